// A program whose operator new takes memory from a pool that libc's malloc knows nothing of: the
// word before each block is for libc the size of a mapping of 1 GiB. Threads begin in a plain
// function.
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <thread>

static char *pool;
static std::size_t used;

void *operator new(std::size_t size)
{
    constexpr std::size_t bytes = 1 << 20, unit = 16;
    if (!pool)
        pool = static_cast<char *>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *block = pool + used + unit;
    const std::size_t word = 1u << 30 | 2;
    std::memcpy(block - sizeof word, &word, sizeof word);
    used += unit + (size + unit - 1) / unit * unit;
    return block;
}

void operator delete(void *) noexcept
{
}

void operator delete(void *, std::size_t) noexcept
{
}

static void work(int i)
{
    std::printf("%d\n", i);
}

int main()
{
    for (int i = 0; i < 3; i++)
        std::thread(work, i).join();
    return 0;
}
