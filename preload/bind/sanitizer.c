/* See sanitizer.h. The functions are weak: without a sanitizer they are NULL. */
#include "sanitizer.h"

void __asan_init(void) __attribute__((weak));
void __hwasan_init(void) __attribute__((weak));
void __msan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));

bool gt_sanitizer_allocates(void)
{
    return __asan_init || __hwasan_init || __msan_init || __tsan_init;
}

bool gt_sanitizer_of_threads(void)
{
    return __tsan_init;
}
