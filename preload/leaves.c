/* What hooks are called where a stack has their numbers. The command has this table, too. */
#include "real.h"

#include "encoder/base/hash.h"

static const char *const names[GT_LEAVES_END] = {
#define GT_HOOK(name, result, parameters, arguments, version) [GT_HOOK_##name] = #name,
#include "preload/hooks/hooks.def"
#define GT_RAW(what, name) [GT_RAW_##name] = #name,
#define GT_RAW_FUTEX(id, text) [GT_RAW_FUTEX_##id] = text,
#include "preload/hooks/raw.def"
#define GT_OMP(how, result, name, parameters, arguments) [GT_OMP_##name] = #name,
#define GT_OMP_ASKED(result, name, parameters)
#define GT_OMP_LEAF(id, text) [GT_OMP_##id] = text,
#include "preload/hooks/openmp.def"
#define GT_URING(result, name, parameters, arguments) [GT_ASYNC_##name] = #name,
#define GT_AIO(result, name, parameters, arguments) [GT_ASYNC_##name] = #name,
#include "preload/hooks/async.def"
#define GT_RESOLVER(result, name, parameters, arguments) [GT_RESOLVER_##name] = #name,
#include "preload/hooks/resolver.def"
};

const char *gt_real_name(enum gt_hook hook)
{
    return hook < GT_LEAVES_END && names[hook] ? names[hook] : "?";
}

uint64_t gt_real_names(void)
{
    uint64_t hash = GT_LEAVES_END;
    for (int i = 0; i < GT_LEAVES_END; i++) {
        for (const char *c = names[i] ? names[i] : ""; *c; c++)
            hash = gt_hash_mix(hash, (uint8_t)*c);
    }
    return hash;
}
