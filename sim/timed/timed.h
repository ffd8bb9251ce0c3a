/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scenario of kind `timed`: pools and instances on hosts with RNICs, and what the instances do.
 * docs/kbtp-timed.5.scd describes the language.
 */
#ifndef KBTP_SIM_TIMED_TIMED_H
#define KBTP_SIM_TIMED_TIMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/mix.h"

struct sim_setting;

#define SIM_TIMED_GROUPS 16u /* of pools, and of instances */
#define SIM_TIMED_HOSTS 16384u
#define SIM_TIMED_NAME 31u

/* `count` targets that are alike, each on a host of its own. */
struct sim_timed_pool {
    char *name;
    uint32_t line; /* of the scenario, where it is named */
    uint32_t count;
    uint32_t workers;    /* CPUs of each */
    uint32_t blocks;     /* of each; 0: as many as its sessions' quotas */
    uint32_t block_size; /* octets */
    uint32_t credits;    /* Request Credits */
    uint32_t max_inline; /* octets */
    uint32_t staging;    /* blocks of each worker */
    bool phantom;        /* blocks are not in memory: sim/timed/nic.h */
};

enum sim_timed_to {
    SIM_TIMED_EACH,  /* an instance has a session with every target of the pool */
    SIM_TIMED_SHARE, /* with one: instance i with target i modulo their number */
};

/* `count` instances (initiators) that are alike, each with one CPU. */
struct sim_timed_instances {
    char *name;
    uint32_t line; /* of the scenario, where they are named */
    uint32_t count;
    uint32_t per_host;
    uint32_t pool; /* index */
    enum sim_timed_to to;
    uint32_t depth;   /* requests outstanding at most, of a session */
    uint32_t handles; /* of a session, and its quota */
    uint32_t fill;    /* of them are bound before it is measured */
    uint32_t length;  /* octets of a block that are used */
    uint32_t weights[SIM_MIX_DRAWS];
    uint64_t operations; /* of an instance; 0: as many as the time allows */
    double rate;         /* operations that come in a second, at random; 0: the next one begins when
                            one has ended */
    uint64_t think_ns;   /* between an outcome and the next request of its place */
    uint64_t stall_at_ns, stall_ns; /* of the first instance: its CPU stops, 0: never */
    bool is_inline;
    bool direct; /* LOADs by the instance itself */
};

struct sim_timed {
    char *title;
    char *nic; /* the name of its cost model, as written */
    uint64_t seed;
    uint64_t duration_ns; /* measured at most */
    uint32_t binding;     /* enum rdma_binding */
    /* The network, when no platform is given. */
    uint32_t leaf_ports; /* 0: a star */
    double oversubscription;
    uint64_t latency_ns, spine_latency_ns; /* 0: latency as in the cost model */
    struct sim_timed_pool *pools;
    struct sim_timed_instances *instances;
    unsigned pools_count, instances_count;
};

/* Reads it, as sim_cost_model_parse(). */
struct sim_timed *sim_timed_parse(const char *name, const char *text, size_t length, char *error,
                                  size_t size);
/* The same with values set in it (sim/scenario_set.h). */
struct sim_timed *sim_timed_parse_set(const char *name, const char *text, size_t length,
                                      struct sim_setting *settings, unsigned count, char *error,
                                      size_t size);
void sim_timed_free(struct sim_timed *timed);
/* Does this YAML text call itself `kind: timed`? */
bool sim_timed_is(const char *text, size_t length);

/* The Initiator ID of an instance in its session with the target on this host. */
void sim_timed_identity(uint32_t instance, uint32_t host, uint8_t id[16]);
/* Hosts, one port each: first those of the targets, then those of the instances. */
uint32_t sim_timed_hosts(const struct sim_timed *timed);
/* "store" when there is one of its group, else "store3". */
void sim_timed_host_name(const struct sim_timed *timed, uint32_t host, char *name, size_t size);

#endif
