/* Calls a function that is bound lazily, from functions with SIZE bytes on the stack. */
int picked(int n);

__attribute__((noinline)) static int outer(int n)
{
    volatile char room[SIZE];
    room[0] = 1;
    return picked(n) - room[0];
}

__attribute__((noinline)) static int outermost(int n)
{
    volatile char room[SIZE];
    room[0] = 1;
    return outer(n) - room[0];
}

int main(void)
{
    volatile int n = outermost(2);
    return n;
}
