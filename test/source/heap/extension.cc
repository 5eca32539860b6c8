/* A library in C++ for a program in C, with operators new and delete of its own, as OWN. */
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#ifdef OWN
static int calls;
#define CALLS (calls > 1000)
void *operator new(std::size_t n)
{
    calls++;
    void *volatile p = std::malloc(n);
    return p ? p : throw std::bad_alloc();
}
void operator delete(void *p) noexcept
{
    std::free(p);
}
void operator delete(void *p, std::size_t) noexcept
{
    std::free(p);
}
#else
#define CALLS 1
#endif

extern "C" int work()
{
    std::vector<std::string> v;
    for (int i = 0; i < 1000; i++)
        v.push_back(std::string(100, 'x'));
    try {
        volatile std::size_t huge = static_cast<std::size_t>(-1) / 2;
        char *volatile p = new char[huge];
        delete[] p;
    } catch (const std::bad_alloc &) {
        return CALLS;
    }
    return -1;
}
