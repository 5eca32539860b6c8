/*
 * Programs that accept connections, and end when their own work is done: visited MODE.
 *
 *   fetches  a thread accepts five files one after the other, and reads each; main waits for it
 *   asks     main sends three requests to a thread of the same program, and stops that thread
 *   knocks   main accepts six connections of a thread, which sleeps before it makes one
 *   metered  main computes and sleeps in turns; a thread accepts three requests meanwhile
 */
#include "../../prog/program.h"
#include <arpa/inet.h>

enum { FILES = 5, PARTS = 20, ASKS = 3, ANSWER_US = 30000, VISITS = 3, TURNS = 12 };
enum { TURN_US = 40000, KNOCKS = 6, KNOCK_US = 20000 };
static struct sockaddr_in address;
static int listener;

static int connect_to_listener(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (void *)&address, sizeof address))
        _exit(1);
    return fd;
}

static void *fetch(void *arg)
{
    char part[1000];
    for (int i = 0; i < FILES; i++) {
        int fd = accept(listener, NULL, NULL);
        while (read(fd, part, sizeof part) > 0)
            ;
        close(fd);
        usleep(1000);
    }
    return arg;
}

static void send_files(void)
{
    char part[1000] = {0};
    for (int i = 0; i < FILES; i++) {
        int fd = connect_to_listener();
        for (int k = 0; k < PARTS; k++) {
            usleep(2000);
            if (write(fd, part, sizeof part) != sizeof part)
                _exit(1);
        }
        close(fd);
    }
}

static void *serve(void *arg)
{
    char byte;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd)) {
        if (read(fd, &byte, 1) == 1)
            usleep(ANSWER_US);
        if (write(fd, &byte, 1) != 1)
            break;
    }
    return arg;
}

static void ask(int times)
{
    char byte = 'x';
    for (int i = 0; i < times; i++) {
        int fd = connect_to_listener();
        if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
            _exit(1);
        close(fd);
    }
}

static void *knock(void *arg)
{
    for (int i = 0; i < KNOCKS; i++) {
        usleep(KNOCK_US);
        close(connect_to_listener());
    }
    return arg;
}

static void open_door(void)
{
    for (int i = 0; i < KNOCKS; i++)
        close(accept(listener, NULL, NULL));
}

static void visit(void)
{
    for (int i = 0; i < VISITS; i++) {
        usleep(100000);
        ask(1);
    }
}

static void work_and_sleep(void)
{
    for (int i = 0; i < TURNS; i++) {
        usleep(TURN_US);
        compute_ns(TURN_US * 100);
    }
}

/* Runs fn in a child process. */
static void begin_child(void (*fn)(void))
{
    if (fork())
        return;
    fn();
    _exit(0);
}

int main(int argc, char **argv)
{
    socklen_t length = sizeof address;
    pthread_t thread;
    char mode = argc == 2 ? argv[1][0] : 0;
    address = (struct sockaddr_in){.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, length) || listen(listener, 16) ||
        getsockname(listener, (void *)&address, &length))
        return 2;
    if (mode == 'f' || mode == 'm')
        begin_child(mode == 'f' ? send_files : visit);
    pthread_create(&thread, NULL, mode == 'f' ? fetch : mode == 'k' ? knock : serve, NULL);
    if (mode == 'a')
        ask(ASKS);
    else if (mode == 'k')
        open_door();
    else if (mode == 'm')
        work_and_sleep();
    if (mode != 'f')
        shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    wait(NULL);
    return 0;
}
