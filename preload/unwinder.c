/*
 * What GCC's code refers to in a frame of ours that an exception, a cancellation or pthread_exit
 * passes: to clean up there. Forwarded to the unwinder that is at it, so that no process loads
 * libgcc_s for us, which takes as long as a short program runs. Called by unwinders, in the thread
 * that unwinds.
 */
#include "symbolize/elf_names.h"

#include <dlfcn.h>
#include <stddef.h>
#include <unwind.h>

__asm__(".hidden _Unwind_Resume"); /* <unwind.h> would have it exported */

/* How the unwinder that leads the thread through our frames goes on. */
static __thread __typeof__(&_Unwind_Resume) resume __attribute__((tls_model("initial-exec")));

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

/* One that is linked into the program may show neither: it passes, and there is no clean-up. */
_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
                                         _Unwind_Exception_Class class,
                                         struct _Unwind_Exception *exception,
                                         struct _Unwind_Context *context)
{
    const struct link_map *in = module_at(__builtin_return_address(0));
    _Unwind_Personality_Fn real = (_Unwind_Personality_Fn)find(in, "__gcc_personality_v0");
    resume = (__typeof__(&_Unwind_Resume))find(in, "_Unwind_Resume");
    return real && resume ? real(version, actions, class, exception, context)
                          : _URC_CONTINUE_UNWIND;
}

/* The end of a clean-up, to which a personality has led. */
void _Unwind_Resume(struct _Unwind_Exception *exception)
{
    resume(exception);
    __builtin_unreachable();
}
