/* A program that sleeps in a library of its own. Tests name the lines. */
void outer_sleep(int us);

__attribute__((noinline)) void request(void)
{
    outer_sleep(30000); // line 6
}

int main(void)
{
    request(); // line 11
    return 0;
}
