/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of a connection that a probe works with; between the files of tests/net/probe*. */
#ifndef KBTP_TESTS_NET_PROBE_SIDES_H
#define KBTP_TESTS_NET_PROBE_SIDES_H

#include "net/mem.h"
#include "tests/net/probe.h"

#define PROBE_OCTETS 65536u
#define PROBE_RECEIVES 4u
#define PROBE_RECEIVE_OCTETS 1024u
#define PROBE_RECEIVES_AT (PROBE_OCTETS - PROBE_RECEIVES * PROBE_RECEIVE_OCTETS)
#define PROBE_SGES 64u

struct probe_side {
    struct rdma *rdma;
    uint8_t *memory; /* PROBE_OCTETS; the last of it are receives, each with its number as wr_id */
    struct rdma_region region;
    uint32_t cq;
    uint32_t conn;
    bool has_region, has_cq, has_conn, ended;
};

struct probe_sides {
    struct probe_side a, b;
    struct mem mem;
    struct rdma_caps caps;
    struct rdma_conn_config config; /* cq is filled in */
    const char *address;
};

/* Memory, completion queues and a connection with `config`. 0 or an error. */
int probe_open(struct probe_sides *s, struct rdma *a, struct rdma *b, const char *address,
               const struct rdma_conn_config *config);
/* One more connection between the same handles, with the memory and queues of that one, which it
 * must not outlive; probe_close() ends no more than the connection. */
int probe_again(struct probe_sides *s, const struct probe_sides *of);
/* Everything that is there is given back. */
void probe_close(struct probe_sides *s);

/* The next completion of this side; false when none comes. */
bool probe_wc(struct probe_side *side, struct rdma_wc *wc);
/* Posts one signaled work request of side a with `octets` at `offset` of its memory, and waits for
 * its completion. -errno of the post, or enum rdma_status. */
int probe_do(struct probe_sides *s, struct rdma_wr *wr, uint32_t offset, uint32_t octets);
/* A work request on side b's memory. */
struct rdma_wr probe_wr(const struct probe_sides *s, enum rdma_op op, uint32_t offset);

/* A pattern in side a's memory; does side b's memory hold it? */
void probe_fill(struct probe_sides *s, uint32_t offset, uint32_t octets, uint8_t first);
bool probe_holds(struct probe_sides *s, const struct probe_side *side, uint32_t offset,
                 uint32_t octets, uint8_t first);

static inline struct probe_answer probe_broken(const char *words)
{
    return (struct probe_answer){PROBE_BROKEN, words};
}

static inline struct probe_answer probe_unknown(const char *words)
{
    return (struct probe_answer){PROBE_UNKNOWN, words};
}

static inline struct probe_answer probe_honoured(const char *words)
{
    return (struct probe_answer){PROBE_HONOURED, words};
}

#endif
