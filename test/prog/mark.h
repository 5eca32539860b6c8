/* The system call, which does not exist, by which a program tells spy.c to look. */
enum { MARK = 9999 };
