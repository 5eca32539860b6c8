/* See channels.h. */
#include "channels.h"

#include "fds.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/channel.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/texts.h"
#include "preload/bind/real.h"
#include "preload/process/process_state.h"
#include "preload/stacks/code_layouts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/sysmacros.h>

#ifndef SO_NETNS_COOKIE /* Linux 5.14 */
#define SO_NETNS_COOKIE 71
#endif

/* Names --------------------------------------------------------------------------------------- */

enum way { NOTHING, READS, WRITES, POLLS };

/*
 * The names of a descriptor's two directions. number: twice how often the descriptor has got a
 * name; odd while a thread writes the names. The names are valid if the number is the same before
 * and after they are read. name: of the stream that is read there, and of the stream that is
 * written; "": not known. room: how many bytes fit into the stream; 0: not known.
 */
enum { NAME = 128, WORDS = NAME / 8, TOGETHER = 64 };
struct ends {
    _Atomic uint32_t number, room;
    _Atomic uint64_t name[2][WORDS];
};

static _Atomic(struct ends *) all[GT_FDS / TOGETHER] GT_SPARSE;
static struct gt_arena arena;

/* NULL: the descriptor has no names, or there is no memory. */
static struct ends *ends_of(int fd, bool make)
{
    _Atomic(struct ends *) *at = &all[fd / TOGETHER];
    struct ends *these = atomic_load_explicit(at, memory_order_acquire), *fresh;
    if (!these && make && (fresh = gt_arena_alloc(&arena, TOGETHER * sizeof *fresh)) &&
        atomic_compare_exchange_strong(at, &these, fresh))
        these = fresh;
    return these ? &these[fd % TOGETHER] : NULL;
}

static void copy_in(_Atomic uint64_t *to, const char *name)
{
    uint64_t words[WORDS];
    memcpy(words, name, sizeof words);
    for (int i = 0; i < WORDS; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
}

/* false: another thread is setting the names at the moment. */
static bool set_names(int fd, const char in[NAME], const char out[NAME], uint32_t room)
{
    struct ends *e = ends_of(fd, true);
    uint32_t number = e ? atomic_load_explicit(&e->number, memory_order_relaxed) : 1;
    if (number & 1 || !atomic_compare_exchange_strong(&e->number, &number, number + 1))
        return false;
    atomic_thread_fence(memory_order_release); /* pairs with name_of's */
    copy_in(e->name[0], in);
    copy_in(e->name[1], out);
    atomic_store_explicit(&e->room, room, memory_order_relaxed);
    atomic_store_explicit(&e->number, number + 2, memory_order_release);
    return true;
}

uint32_t gt_channel_name(int fd)
{
    struct ends *e = ends_of(fd, false);
    return e ? atomic_load_explicit(&e->number, memory_order_acquire) & ~1u : 0;
}

/* false: fd does not have the name with that number any more. */
static bool name_of(int fd, uint32_t number, bool written, char name[NAME], uint32_t *room)
{
    struct ends *e = number && gt_fd_known(fd) == GT_FD_NAMED ? ends_of(fd, false) : NULL;
    uint64_t words[WORDS];
    if (!e || atomic_load_explicit(&e->number, memory_order_acquire) != number)
        return false;
    for (int i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&e->name[written][i], memory_order_relaxed);
    *room = atomic_load_explicit(&e->room, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    memcpy(name, words, sizeof words);
    return atomic_load_explicit(&e->number, memory_order_relaxed) == number && *name;
}

/* "pipe 0:14:4711" */
static void put_inode(char name[NAME], const char *kind, const struct stat *is, bool device)
{
    struct gt_strbuf t = gt_strbuf_start(name, NAME);
    gt_strbuf_add(&t, kind);
    if (device) {
        gt_strbuf_decimal(&t, major(is->st_dev));
        gt_strbuf_add(&t, ":");
        gt_strbuf_decimal(&t, minor(is->st_dev));
        gt_strbuf_add(&t, ":");
    }
    gt_strbuf_decimal(&t, is->st_ino);
}

/* Sockets ------------------------------------------------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static _Atomic bool forbidden;

void gt_channels_forbid(void)
{
    atomic_store_explicit(&forbidden, true, memory_order_relaxed);
}

/* "127.0.0.1:80", also for an IPv6 socket with an IPv4 address; "[20010db8…]:80" */
static void put_address(struct gt_strbuf *t, const union address *a)
{
    enum { V4 = 4, V6 = 16 };
    bool whole = a->any.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr);
    const uint8_t *bytes = a->any.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
                                                       : a->v6.sin6_addr.s6_addr + V6 - V4;
    if (whole) {
        gt_strbuf_add(t, "[");
        gt_strbuf_hex_bytes(t, a->v6.sin6_addr.s6_addr, V6);
        gt_strbuf_add(t, "]");
    }
    for (int i = 0; i < V4 && !whole; i++) {
        gt_strbuf_add(t, i ? "." : "");
        gt_strbuf_decimal(t, bytes[i]);
    }
    gt_strbuf_add(t, ":");
    gt_strbuf_decimal(t, ntohs(a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port));
}

static void put_flow(char name[NAME], const union address *from, const union address *to,
                     uint64_t space)
{
    struct gt_strbuf t = gt_strbuf_start(name, NAME);
    gt_strbuf_add(&t, "tcp ");
    put_address(&t, from);
    gt_strbuf_add(&t, ">");
    put_address(&t, to);
    gt_strbuf_add(&t, " in ");
    gt_strbuf_decimal(&t, space);
}

static bool ask_option(int fd, int option, void *value, socklen_t size)
{
    return gt_syscall(SYS_getsockopt, fd, SOL_SOCKET, option, value, &size) == 0;
}

bool gt_channel_gets_datagrams(int fd)
{
    GT_KEEP_ERRNO;
    int type = 0;
    return !atomic_load_explicit(&forbidden, memory_order_relaxed) &&
           ask_option(fd, SO_TYPE, &type, sizeof type) && type == SOCK_DGRAM;
}

static bool find_tcp(int fd, const union address *own)
{
    char in[NAME] = "", out[NAME] = "";
    union address peer = {0};
    socklen_t size = sizeof peer;
    uint64_t space = 0;
    int protocol = 0;
    if (!ask_option(fd, SO_PROTOCOL, &protocol, sizeof protocol) || protocol != IPPROTO_TCP ||
        !ask_option(fd, SO_NETNS_COOKIE, &space, sizeof space) ||
        gt_syscall(SYS_getpeername, fd, &peer, &size) != 0)
        return false;
    put_flow(in, &peer, own, space);
    put_flow(out, own, &peer, space);
    return set_names(fd, in, out, 0);
}

static bool find_socket(int fd, const struct stat *is)
{
    char in[NAME] = "";
    union address own = {0};
    socklen_t size = sizeof own;
    if (atomic_load_explicit(&forbidden, memory_order_relaxed) ||
        gt_syscall(SYS_getsockname, fd, &own, &size) != 0)
        return false;
    if (own.any.sa_family == AF_INET || own.any.sa_family == AF_INET6)
        return find_tcp(fd, &own);
    put_inode(in, "unix ", is, false);
    return own.any.sa_family == AF_UNIX && set_names(fd, in, (char[NAME]){""}, 0);
}

/* Finding them out ---------------------------------------------------------------------------- */

bool gt_channel_find(int fd, const struct stat *is)
{
    char pipe[NAME] = "";
    if (S_ISSOCK(is->st_mode))
        return find_socket(fd, is);
    if (!S_ISFIFO(is->st_mode))
        return false;
    put_inode(pipe, "pipe ", is, true);
    bool asks = !atomic_load_explicit(&forbidden, memory_order_relaxed);
    long room = asks ? gt_syscall(SYS_fcntl, fd, F_GETPIPE_SZ) : 0;
    return set_names(fd, pipe, pipe, room > 0 ? (uint32_t)room : 0);
}

static void name(int fd, const char in[NAME], const char out[NAME], uint32_t room)
{
    if (fd < GT_FDS && set_names(fd, in, out, room))
        gt_fd_set(fd, GT_FD_NAMED);
}

/* A child of vfork has our memory but descriptors of its own. */
static bool is_to_be_named(void)
{
    return gt_channels_wanted() && gt_process_is_ours();
}

int gt_channel_of_event(int fd)
{
    char text[NAME] = "";
    struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
    if (fd < 0 || !is_to_be_named())
        return fd;
    GT_KEEP_ERRNO;
    gt_strbuf_add(&t, GT_CHANNEL_EVENT);
    gt_strbuf_decimal(&t, (uint64_t)gt_syscall(SYS_getpid));
    gt_strbuf_add(&t, ".");
    gt_strbuf_decimal(&t, gt_clock_now());
    gt_strbuf_add(&t, ".");
    gt_strbuf_decimal(&t, (uint64_t)fd);
    name(fd, text, text, 0);
    return fd;
}

int gt_channels_of_pair(int made, const int fds[2])
{
    struct stat is[2];
    char text[2][NAME] = {"", ""};
    if (made != 0 || !is_to_be_named())
        return made;
    GT_KEEP_ERRNO;
    for (int i = 0; i < 2; i++) {
        if (gt_fstat(fds[i], &is[i]) != 0)
            return made;
        put_inode(text[i], "unix ", &is[i], false);
    }
    name(fds[0], text[0], text[1], 0);
    name(fds[1], text[1], text[0], 0);
    return made;
}

int gt_channel_copy(int fd, int copy)
{
    char in[NAME], out[NAME] = "";
    if (copy < 0 || copy == fd || fd >= GT_FDS || !is_to_be_named())
        return copy;
    uint32_t number = gt_channel_name(fd), room;
    if (name_of(fd, number, false, in, &room)) {
        name_of(fd, number, true, out, &room);
        name(copy, in, out, room);
    }
    return copy;
}

/* Telling ------------------------------------------------------------------------------------- */

static const uint8_t ways[GT_LEAVES_END] = {
#define GT_CALL(what, result, name, parameters, arguments)
#define GT_NEW_FD(what, name, parameters, arguments)
#define GT_READS(what, bytes, result, name, ...) [GT_HOOK_##name] = READS,
#define GT_WRITES(what, bytes, result, name, ...) [GT_HOOK_##name] = WRITES,
#define GT_ROW(how, result, name, parameters, arguments) WAY_OF_##how(name)
#define WAY_OF_WRITE(name) [GT_HOOK_##name] = WRITES,
#define WAY_OF_POLL(name) [GT_HOOK_##name] = POLLS,
#define WAY_OF_SLEEP(name)
#define WAY_OF_EXEC(name)
#define WAY_OF_NEW(name)
#define WAY_OF_NEW_PAIR(name)
#define WAY_OF_NEW_SOCKETS(name)
#define WAY_OF_NEW_EVENT(name)
#define WAY_OF_SYNC(name)
#define WAY_OF_FLOCK(name)
#define WAY_OF_LOCKF(name)
#define WAY_OF_READS_EVENT(name) [GT_HOOK_##name] = READS,
#define WAY_OF_WRITES_EVENT(name) [GT_HOOK_##name] = WRITES,
#define WAY_OF_DUP(name)
#define WAY_OF_CONNECT(name)
#define WAY_OF_BIND(name)
#define WAY_OF_RECEIVE(name) [GT_HOOK_##name] = READS,
#define WAY_OF_SEND(name) [GT_HOOK_##name] = WRITES,
#define WAY_OF_MESSAGES(name)
#include "preload/tables/calls.def"
};

static void tell(struct gt_writer *w, const char *channel, const char *what)
{
    if (gt_muted() || !gt_writer_pin_texts(w))
        return;
    uint64_t args[] = {0, gt_texts_put(w, channel, (uint32_t)strlen(channel)),
                       gt_texts_put(w, what, (uint32_t)strlen(what))};
    gt_ev_user(w, GT_EV_USER_LOG, args, NULL);
    gt_writer_unpin(w);
}

/*
 * For an eventfd: *moved is its value, in the call's 8 bytes. false: they cannot be read, or are 0.
 */
static bool of_event(const char *channel, const struct gt_slice *slice, uint64_t *moved)
{
    static const char event[] = GT_CHANNEL GT_CHANNEL_EVENT;
    if (strncmp(channel, event, sizeof event - 1) != 0)
        return true;
    if (!slice->bytes || !gt_can_read(slice->bytes, sizeof *moved))
        return false;
    memcpy(moved, slice->bytes, sizeof *moved);
    return *moved;
}

/* "wrote 512 of 65536" */
static void tell_moved(struct gt_thread *t, const struct gt_slice *slice, bool written)
{
    char channel[sizeof GT_CHANNEL + NAME] = GT_CHANNEL, what[64];
    struct gt_strbuf text = gt_strbuf_start(what, sizeof what);
    uint64_t moved = (uint64_t)slice->moved;
    uint32_t room = 0;
    if (t->channel.since != slice->since ||
        !name_of(t->channel.fd, t->channel.name, written, channel + sizeof GT_CHANNEL - 1, &room) ||
        !of_event(channel, slice, &moved))
        return;
    gt_strbuf_add(&text, written ? GT_CHANNEL_WROTE : GT_CHANNEL_READ);
    gt_strbuf_decimal(&text, moved);
    if (written && room) {
        gt_strbuf_add(&text, GT_CHANNEL_OF);
        gt_strbuf_decimal(&text, room);
    }
    tell(&t->w, channel, what);
}

void gt_channel_tell(struct gt_thread *t, const struct gt_slice *slice)
{
    enum way way = ways[slice->hook];
    if (way == POLLS && gt_channels_wanted() && slice->moved == 1)
        tell(&t->w, GT_CHANNELS, GT_CHANNELS_ONE_READY);
    else if (way == READS || way == WRITES)
        tell_moved(t, slice, way == WRITES);
}
