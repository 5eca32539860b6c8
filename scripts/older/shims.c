/*
 * Functions that newer glibcs' headers call in place of older ones: here they call those. Linked
 * into what `make dist` makes, and nothing else (scripts/older/stub), for our own code and for that
 * of static libraries, which was compiled with the headers of the system that we are built on, too.
 *
 * No header of libc declares anything here: it would redirect these names again.
 */
/* Since glibc 2.38: they read binary numbers, 0b…, too. */
long strtol(const char *text, char **end, int base);
long long strtoll(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);

long __isoc23_strtol(const char *text, char **end, int base)
{
    return strtol(text, end, base);
}

long long __isoc23_strtoll(const char *text, char **end, int base)
{
    return strtoll(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
    return strtoul(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base)
{
    return strtoull(text, end, base);
}
