/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two handles of net/verbs on the rdma-core for tests, a connection from a to b, and accounts: of
 * whatever was posted each must complete once, events must come in their order, and what fails must
 * say so. All of that is asserted by every step, so that tests only say what happens.
 */
#ifndef KBTP_TESTS_NET_VERBS_WORLD_H
#define KBTP_TESTS_NET_VERBS_WORLD_H

#include "net/verbs/verbs.h"
#include "tests/net/fake/fake.h"

#define VW_PORT 7000
#define VW_ADDRESS FAKE_HERE ":7000"
#define VW_OCTETS 4096u
#define VW_RECEIVES 8u
#define VW_RECEIVE_OCTETS 128u
#define VW_IDS 4096u
#define VW_DEPTH 32u

enum vw_stage {
    VW_NOTHING,
    VW_ASKED, /* connected or accepted, and no answer yet */
    VW_CONNECTED,
    VW_ENDED, /* DISCONNECTED was taken */
    VW_OVER,  /* DRAINED or REJECTED was taken */
};

struct vw_side {
    struct rdma *rdma;
    const char *name;
    struct rdma_region region;
    uint32_t cq, conn;
    enum vw_stage stage;
    bool has_region, has_cq, has_conn, has_request;
    bool rejected, broken;
    int error;            /* the first that an event had */
    uint32_t ids;         /* posted: 1 to this */
    uint8_t done[VW_IDS]; /* how often each completed */
    bool silent[VW_IDS];  /* it is not signaled */
    struct rdma_wc last;  /* that was not FLUSHED */
    uint32_t oks, receives, flushed, bad;
    uint32_t private_length;
    char private_data[RDMA_MAX_PRIVATE + 1];
    _Alignas(8) char memory[VW_OCTETS]; /* receives are at its end; atomics at its beginning */
};

struct vw {
    struct rdma_verbs *device;
    struct rdma_caps caps;
    struct vw_side a, b;
    struct rdma_window window;
    bool has_window, reject, stay; /* what b does with requests; stay: nothing yet */
    bool wait;                     /* in rdma_verbs_wait() before each look */
    char words[RDMA_VERBS_WORDS];
    uint32_t errors; /* that were returned */
    bool told;       /* of an error, by an event */
};

/* What each returns is 0 or the first error; the rest of the world is as far as it came. */
int vw_open(struct vw *w, uint32_t connect_ms); /* after fake_open() */
int vw_connect_to(struct vw *w, const char *address);
int vw_accept(struct vw *w);
/* Connects to b, until b has the request. */
bool vw_request(struct vw *w);
/* A connection, until both ends know of it. */
int vw_connect(struct vw *w);
/* Everybody looks once. */
void vw_step(struct vw *w);
/* Until both are there, or beyond; false: it takes too long. */
bool vw_until(struct vw *w, enum vw_stage a, enum vw_stage b);
void vw_steps(struct vw *w, uint32_t count);
/* Both ends of the connection are over and destroyed; it can be made again. */
void vw_end(struct vw *w);
/* Everything is given back, whatever is left. */
void vw_close(struct vw *w);

/* Posts work requests with numbers of their own. */
int vw_send(struct vw *w, struct vw_side *side, struct rdma_wr *wrs, uint32_t count);
int vw_receive(struct vw *w, struct vw_side *side);
/* A signaled work request of a with octets 0 to `octets` of both memories. */
struct rdma_wr vw_wr(const struct vw *w, enum rdma_op op, struct rdma_sge *sge, uint32_t octets);
/* Posts one such of a, and waits for its end: enum rdma_status, or -errno. */
int vw_do(struct vw *w, struct vw_side *side, struct rdma_wr *wr);

/* A call returned this; `words` should say what failed. */
int vw_returned(struct vw *w, int result, const char *words);

#endif
