// Every operator new and delete. The last line is "end LIVE", as of test/prog/heap.c. With an
// argument nothing fails on the way: mimalloc, being C, cannot throw.
#include <cstddef>
#include <cstdio>
#include <malloc.h>
#include <new>

static long live;
static char output[4096];

static void *took(void *p)
{
    live += p ? static_cast<long>(malloc_usable_size(p)) : 0;
    return p;
}

static void *gone(void *p)
{
    live -= p ? static_cast<long>(malloc_usable_size(p)) : 0;
    return p;
}

// Some to be kept, some to be deleted.
static void operators(bool keep, std::size_t size, std::align_val_t align)
{
    void *p[] = {
        took(::operator new(size)),
        took(::operator new[](size)),
        took(::operator new(size, std::nothrow)),
        took(::operator new[](size, std::nothrow)),
        took(::operator new(size, align)),
        took(::operator new[](size, align)),
        took(::operator new(size, align, std::nothrow)),
        took(::operator new[](size, align, std::nothrow)),
        took(::operator new(size)),
        took(::operator new[](size)),
        took(::operator new(size, align)),
        took(::operator new[](size, align)),
    };
    if (keep)
        return;
    ::operator delete(gone(p[0]));
    ::operator delete[](gone(p[1]));
    ::operator delete(gone(p[2]), std::nothrow);
    ::operator delete[](gone(p[3]), std::nothrow);
    ::operator delete(gone(p[4]), align);
    ::operator delete[](gone(p[5]), align);
    ::operator delete(gone(p[6]), align, std::nothrow);
    ::operator delete[](gone(p[7]), align, std::nothrow);
    ::operator delete(gone(p[8]), size);
    ::operator delete[](gone(p[9]), size);
    ::operator delete(gone(p[10]), size, align);
    ::operator delete[](gone(p[11]), size, align);
}

static void failures()
{
    volatile std::size_t huge = static_cast<std::size_t>(-1) / 2;
    try {
        took(::operator new(huge));
    } catch (const std::bad_alloc &) {
        std::puts("bad_alloc");
    }
    try {
        took(::operator new(huge, std::align_val_t(64)));
    } catch (const std::bad_alloc &) {
        std::puts("bad_alloc");
    }
    std::printf("nothrow %d\n", ::operator new[](huge, std::nothrow) == nullptr);
    ::operator delete(nullptr);
    ::operator delete[](nullptr, huge);
}

int main(int argc, char **)
{
    std::setvbuf(stdout, output, _IOFBF, sizeof output);
    if (argc == 1)
        failures();
    for (std::size_t size = 1; size < 300000; size = size * 3 + 1) {
        for (std::size_t align = 16; align <= 4096; align *= 16)
            for (int round = 0; round < 3; round++)
                operators(round == 1, size, std::align_val_t(align));
    }
    std::printf("end %ld\n", live);
    return 0;
}
