/*
 * The unwinder's functions that GCC's code refers to for the clean-up of our frames, when an
 * exception, a cancellation or pthread_exit passes them. Unwinders call them, in the thread that
 * unwinds.
 *
 * They forward to the unwinder at work, so that no process loads libgcc_s for us, which takes as
 * long as a short program runs. They are declared as in the Itanium C++ ABI, without <unwind.h>,
 * which would export them.
 */
#include "symbolize/elf/elf_names.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTINUE_UNWIND = 8 };

typedef int personality_fn(int version, int actions, uint64_t class, void *exception,
                           void *context);
typedef void resume_fn(void *exception);

personality_fn __gcc_personality_v0;
resume_fn _Unwind_Resume;

/* _Unwind_Resume of the unwinder that leads the thread through our frames. */
static __thread resume_fn *resume __attribute__((tls_model("initial-exec")));

static const struct link_map *module_at(const void *code)
{
    struct link_map *map = NULL;
    Dl_info info;
    return dladdr1(code, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static void *find(const struct link_map *in, const char *name)
{
    void *found = in ? gt_elf_function(in, name) : NULL;
    return found ? found : dlsym(RTLD_DEFAULT, name);
}

/* An unwinder that is linked into the program may export neither function: then it passes our frame
 * without a clean-up. */
int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context)
{
    const struct link_map *in = module_at(__builtin_return_address(0));
    personality_fn *real = (personality_fn *)find(in, "__gcc_personality_v0");
    resume = (resume_fn *)find(in, "_Unwind_Resume");
    return real && resume ? real(version, actions, class, exception, context) : CONTINUE_UNWIND;
}

/* Ends a clean-up: continues the unwinder that __gcc_personality_v0 found. */
void _Unwind_Resume(void *exception)
{
    resume(exception);
    __builtin_unreachable();
}
