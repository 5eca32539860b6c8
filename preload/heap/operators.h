/* C++'s operators new and delete, where they do not go through malloc. See operators.c. */
#ifndef GT_OPERATORS_H
#define GT_OPERATORS_H

/* From gt_heap_resolve_end, when the allocator is known. */
void gt_operators_resolve(void);

#endif
