/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of a scenario of kind `protocol` in one order, whatever world they are made in: a
 * simulated one (sim_in_turn_simulate()), or one over devices. What comes of them is written down
 * in the same way, so that two worlds can be compared.
 *
 * The order: at first each initiator, in the order of the file, begins its session. Then they take
 * turns, in the same order, again and again. In its turn an initiator begins its next request, and
 * when `depth` is more than one those behind it, as many as may be outstanding; one that is `direct`,
 * or a GOODBYE, begins when all before it have their outcomes, and nothing behind it begins in the
 * same turn. Then nothing begins until all of them have their outcomes and the target has nothing
 * left to do.
 *
 * An initiator whose next request comes `after` one that has no outcome yet misses its turn; so
 * nobody waits but for what is already under way. Those with `same_id` say HELLO in the turn in
 * which their first request can begin, those with `follows` when all others have gone and every
 * session is over. The run ends when all initiators miss their turns; what was not begun by then
 * never will be.
 *
 * At the end the STags that completions of LOADs were to invalidate are judged, the last one first:
 * in a simulated world the RNIC says whether one is still valid, over a device it is used again.
 */
#ifndef KBTP_SIM_IN_TURN_H
#define KBTP_SIM_IN_TURN_H

#include "ref/initiator.h"
#include "sim/scenario.h"

#define SIM_IN_TURN_OCTETS 160u /* of a line */
#define SIM_IN_TURN_LINES (SIM_MAX_INITIATORS * (2 * SIM_MAX_REQUESTS + 1))

/* What a world does. Each int is 0 or ends the run: it is what sim_in_turn_run() returns. */
struct sim_in_turn_ops {
    int (*connect)(void *world, uint32_t initiator);
    /* Makes this request; nothing else happens. */
    int (*submit)(void *world, uint32_t initiator, uint32_t request);
    /* Until every request has its outcome, every HELLO its answer, and nothing is left to do. */
    int (*rest)(void *world);
    /* The status with which its HELLO was answered. */
    uint16_t (*refused)(void *world, uint32_t initiator);
    /* Is every session FREE, and everybody else gone? */
    bool (*is_over)(void *world, uint32_t initiator);
    /* Is the STag that this LOAD had of no more use? To find out, `handle` can be loaded, whose
     * data fits its buffer. *verdict is what its completion said; NULL: that is enough. */
    int (*judge)(void *world, uint32_t initiator, uint32_t request, uint64_t handle,
                 const char **verdict);
};
#define SIM_STAG_REVOKED "STag revoked"
#define SIM_STAG_VALID "STag STILL VALID"

struct sim_in_turn_outcome {
    struct kbtp_outcome outcome;
    uint64_t hash; /* of the octets that were loaded or stored */
    bool told;
};

struct sim_in_turn {
    const struct sim_scenario *scenario;
    const struct sim_in_turn_ops *ops;
    void *world;
    uint32_t begun[SIM_MAX_INITIATORS]; /* requests */
    bool came[SIM_MAX_INITIATORS], refused[SIM_MAX_INITIATORS];
    struct sim_in_turn_outcome outcomes[SIM_MAX_INITIATORS][SIM_MAX_REQUESTS];
    uint32_t bound[SIM_MAX_INITIATORS][SIM_MAX_HANDLES]; /* octets of data; by owner */
    uint32_t unexpected;                                 /* statuses other than `expect` says */
    uint32_t count; /* lines of the transcript: of a request, a refused HELLO, or an STag */
    char lines[SIM_IN_TURN_LINES][SIM_IN_TURN_OCTETS];
};

/*
 * Can the requests be made in turn, and will the same come of it in every world? False with what is
 * in the way in `why`: a key that leaves to the simulator when something fails, stops or is over.
 */
bool sim_in_turn_suits(const struct sim_scenario *scenario, char *why, size_t size);

/* Of one that suits; scenario, ops and world are set, the rest is zero. -EBUSY: `unfinished` names
 * a request that has no outcome at rest. */
int sim_in_turn_run(struct sim_in_turn *t, char *unfinished, size_t size);

/* By the world: an outcome. `buffer` is the request's, or NULL. */
void sim_in_turn_told(struct sim_in_turn *t, uint32_t initiator, uint32_t request,
                      const struct kbtp_outcome *outcome, const void *buffer);

/* "X.1", as traces and `after` name it. */
void sim_in_turn_name(const struct sim_scenario *s, uint32_t initiator, uint32_t request, char *out,
                      size_t size);

/* The first line that differs: its index, or the count of both when none does. */
uint32_t sim_in_turn_compare(const struct sim_in_turn *a, const struct sim_in_turn *b);

/*
 * In a simulated world (sim/protocol_in_turn.c), with all of its checkers. 0, or a negative errno
 * code with a line in `why`: -EPROTO for a property that is violated, or a request without outcome.
 */
int sim_in_turn_simulate(struct sim_in_turn *t, char *why, size_t size);

#endif
