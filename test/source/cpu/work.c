/* A library whose work computes for 4 ms. */
#include "../../single/cpu/burners.h"
void work(void)
{
    spin(0.004);
}
