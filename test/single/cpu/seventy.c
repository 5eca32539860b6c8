/* Seventy threads compute. Prints how much CPU time they used. */
#include "burners.h"
int main(void)
{
    printf("%f\n", threads(70, burn, 0.08));
    return 0;
}
