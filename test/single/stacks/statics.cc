/*
 * Two threads in a deadlock of two local statics, which initialise each other. Prints their TIDs.
 */
#include <cstdio>
#include <pthread.h>
#include <thread>
#include <unistd.h>
static pthread_barrier_t both;
struct A {
    A();
    int v;
};
struct B {
    B();
    int v;
};
A &a()
{
    static A one;
    return one;
}
B &b()
{
    static B one;
    return one;
}
static void meet()
{
    dprintf(1, "%d\n", gettid());
    pthread_barrier_wait(&both);
}
A::A()
{
    meet();
    v = b().v;
}
B::B()
{
    meet();
    v = a().v;
}
int main()
{
    pthread_barrier_init(&both, nullptr, 2);
    std::thread x([] { a(); }), y([] { b(); });
    x.join();
    y.join();
}
