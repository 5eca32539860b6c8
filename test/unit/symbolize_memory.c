/* Debug information that is mapped takes memory only while it is read, and stays what it is. */
#include "check.h"

#include "symbolize/elf/image.h"

#include <stdbool.h>

/* Bytes in this process's memory. */
static size_t in_memory(void)
{
    char line[256];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r"); /* statm is late by some pages */
    while (f && !kib && fgets(line, sizeof line, f))
        sscanf(line, "Rss: %zu kB", &kib);
    CHECK(f && kib, "no Rss in smaps_rollup");
    fclose(f);
    return kib * 1024;
}

static uint64_t sum_of(const struct gt_image *image, const ElfW(Shdr) * sh)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sh->sh_size; i++)
        sum = sum * 31 + ((const uint8_t *)image->base)[sh->sh_offset + i];
    return sum;
}

int main(void)
{
    struct gt_image image;
    CHECK_EQ(gt_image_open(&image, "/proc/self/exe"), 0);
    const ElfW(Shdr) *sh = gt_image_header(&image, ".debug_info");
    CHECK(sh && sh->sh_size > 65536, "this program needs debug information");
    in_memory(); /* libc's code for that is there from now on */
    uint64_t sum = sum_of(&image, sh);
    size_t warm = in_memory();
    gt_image_cool(&image);
    size_t cold = in_memory();
    CHECK(warm - cold >= sh->sh_size - 2 * 4096, "of %zu bytes %zu are still there",
          (size_t)sh->sh_size, cold - (warm - sh->sh_size));
    CHECK_EQ(sum_of(&image, sh), sum);
    gt_image_close(&image);
    return 0;
}
