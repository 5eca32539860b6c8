/* Waits for sockets of families that have no table in /proc/net. */
#include "../../prog/program.h"
int main(void)
{
    struct pollfd p[] = {{.fd = socket(AF_NETLINK, SOCK_RAW, 0)},
                         {.fd = socket(AF_INET, SOCK_DGRAM, 0)}};
    return poll(p, 2, -1);
}
