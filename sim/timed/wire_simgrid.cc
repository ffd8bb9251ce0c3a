/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages share links as SimGrid's flow model says: the module that wire_simgrid.c loads, and the
 * one file in C++.
 *
 * SimGrid owns the time: its engine runs, without any actor, and calls us when a flow has ended and
 * when its timer, of which we have one, comes to the first event of our clock. It moves only
 * octets: its links have no latency, sim_wire_is_through() adds ours. The order of what happens at
 * the same nanosecond is never SimGrid's: the end of a flow plans an event, with the sequence that
 * was taken when the flow began.
 *
 * Dates. SimGrid's are seconds in a double. We promise what wire.h says: with nobody else on its
 * way a flow that began at nanosecond t ends at ceil(t + octets / rate), and before the events of
 * that nanosecond which have a later sequence. SimGrid runs timers before the ends of flows of the
 * same date, so our events happen LATE_NS after their nanosecond, and a flow, which begins as late,
 * has by LATE_NS less to send. So an end in [t - 1, t] ns comes before the events of t, and
 *
 *     ns = ceil(date - TOLERANCE_NS)
 *
 * is right if the date is right to TOLERANCE_NS, and if ends that are not on a whole nanosecond are
 * by more than that and what SimGrid takes for the same date (PRECISION) after it:
 *
 *     - Up to 100 s a double is right to 0.007 ps. To a date there are at most four roundings: of
 *       the timer's date, of SimGrid's steps to it and to the end, and of the end; then one when it
 *       is made nanoseconds (to 0.008 ps); and the octets are rounded to a unit (UNITS), at most
 *       0.004 ps at 1 Gbit/s. Together below 0.05 ps, half of TOLERANCE_NS.
 *     - At R Gbit/s an end that is not on a whole nanosecond is at least 1/R ns after one: 0.5 ps
 *       for R = 2,000. SimGrid may let it happen by PRECISION earlier, with something else. The sum
 *       of 0.1 ps, 0.1 ps and 0.05 ps is half of that.
 *     - An end on t is at most 0.05 ps late and must come before the timer at t + LATE_NS, with
 *       PRECISION between them: LATE_NS is 1 ps.
 *
 * A round of SimGrid's engine for each of our events would take longer than all that it does with
 * flows. So events happen ahead of SimGrid's clock as long as they come before the first end of a
 * flow, which SimGrid's model tells; when one of them begins a message, SimGrid's clock comes there
 * first.
 */
extern "C" {
#include "sim/timed/wire_simgrid.h"
}

#include <simgrid/Exception.hpp>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace
{

namespace s4u = simgrid::s4u;
namespace routing = simgrid::kernel::routing;
using simgrid::kernel::timer::Timer;

constexpr double NS = 1e9;            /* in a second */
constexpr double LATE_NS = 1e-3;      /* 1 ps */
constexpr double TOLERANCE_NS = 1e-4; /* 0.1 ps */
constexpr double APART_S = 2e-13;     /* twice PRECISION: surely not the same date */
/* Parts of an octet: payloads are whole numbers, in SimGrid. 2^32 octets are exact in a double. */
constexpr double UNITS = 1 << 20;

/*
 * PRECISION, within which SimGrid takes dates for the same, is 0.1 ps. Latencies are not SimGrid's,
 * so that no window bounds a flow; TCP-gamma says so again.
 */
const char *const words[] = {
    "kbtp",
#if SIMGRID_VERSION >= 40000
    "--cfg=network/model:raw",
#else
    "--cfg=network/model:CM02",
#endif
    "--cfg=network/crosstraffic:0",
    "--cfg=network/TCP-gamma:1e15",
#if SIMGRID_VERSION >= 33600
    "--cfg=precision/timing:1e-13",
#else
    "--cfg=surf/precision:1e-13",
#endif
    "--cfg=debug/clean-atexit:no",
    "--log=root.thresh:critical",
    "--log=root.fmt:%m%n",
};

/* ---- the engine: one a process ----------------------------------------------------------- */

/* It leaves the signals of the process alone: SimGrid would print something, and exit. */
class KeptSignals
{
    static constexpr int numbers[] = {SIGINT, SIGSEGV, SIGBUS};
    struct sigaction kept[3] = {};

  public:
    KeptSignals()
    {
        for (int i = 0; i < 3; i++)
            sigaction(numbers[i], nullptr, &kept[i]);
    }
    ~KeptSignals()
    {
        for (int i = 0; i < 3; i++)
            sigaction(numbers[i], &kept[i], nullptr);
    }
    KeptSignals(const KeptSignals &) = delete;
    KeptSignals &operator=(const KeptSignals &) = delete;
};

/* Never ends: SimGrid's cannot be made anew. */
s4u::Engine *engine()
{
    static s4u::Engine *made;
    if (made)
        return made;
    static std::vector<std::string> copies(std::begin(words), std::end(words));
    std::vector<char *> argv;
    argv.reserve(copies.size() + 1);
    for (std::string &copy : copies)
        argv.push_back(copy.data());
    argv.push_back(nullptr);
    int argc = static_cast<int>(copies.size());
    KeptSignals kept;
    made = new s4u::Engine(&argc, argv.data());
    return made;
}

/* ---- the network ------------------------------------------------------------------------- */

/* Finds routes by asking the topology: a table would need memory for each pair of ports. */
class Zone : public routing::NetZoneImpl
{
    const struct sim_topology *topology;
    std::vector<s4u::Link *> links;
    std::vector<s4u::Host *> hosts; /* by port */

  public:
    Zone(const std::string &name, const struct sim_topology *of) : NetZoneImpl(name), topology(of)
    {
    }

    void get_local_route(const routing::NetPoint *from, const routing::NetPoint *to,
                         routing::Route *into, double * /*latency*/) override
    {
        uint32_t found[SIM_WIRE_MAX_ROUTE];
        uint32_t count = topology->route(topology, static_cast<uint32_t>(from->id()),
                                         static_cast<uint32_t>(to->id()), found);
        for (uint32_t i = 0; i < count; i++)
            into->link_list_.push_back(links[found[i]]->get_impl());
    }

    s4u::Host *host(uint32_t port) const
    {
        return hosts[port];
    }

    void make()
    {
        const std::string prefix = get_name() + " ";
        for (uint32_t i = 0; i < topology->ports; i++) {
            const std::string name = prefix + "port " + std::to_string(i);
#if SIMGRID_VERSION >= 40000
            s4u::Host *made = get_iface()->add_host(name, 1e9);
#else
            s4u::Host *made = get_iface()->create_host(name, 1e9);
#endif
            made->seal();
            hosts.push_back(made);
        }
        for (uint32_t i = 0; i < topology->links_count; i++) {
            const struct sim_link &of = topology->links[i];
            const std::string name = prefix + "link " + std::to_string(i);
            const std::vector<double> rates = {of.octets_per_ns * UNITS * NS};
#if SIMGRID_VERSION >= 40000
            s4u::Link *link = get_iface()->add_link(name, rates);
#else
            s4u::Link *link = get_iface()->create_link(name, rates);
#endif
            link->set_latency(0.0);
            if (of.fat_pipe)
                link->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
            link->seal();
            links.push_back(link);
        }
        seal();
    }
};

/* The root, or beside the platform of a file: no way goes from one to the other. */
Zone *make_zone(const struct sim_topology *topology)
{
    Zone *zone = new Zone("kbtp's wire", topology);
    const routing::NetZoneImpl *root = engine()->get_netzone_root()->get_impl();
    if (root != zone) {
        zone->set_network_model(root->get_network_model());
        zone->set_cpu_pm_model(root->get_cpu_pm_model());
        zone->set_cpu_vm_model(root->get_cpu_vm_model());
        zone->set_disk_model(root->get_disk_model());
        zone->set_host_model(root->get_host_model());
    }
    zone->make();
    return zone;
}

/* ---- the wire ---------------------------------------------------------------------------- */

struct Wire {
    struct sim_wire wire; /* first */
    const struct sim_simgrid_program *program;
    Zone *zone;
    Timer *timer;      /* of our next event, or NULL */
    uint64_t timer_ns; /* when that is */
    uint64_t begun, through;
    bool ahead; /* of SimGrid's clock */
    /* Begun ahead, all at one time: our clock waits for SimGrid's. */
    std::vector<struct sim_wire_flow *> to_begin;
    /* Ended. In the callback of its end a Comm cannot be let go: SimGrid still uses it. */
    std::vector<s4u::CommPtr> ended;
};

Wire *the_wire; /* SimGrid's callbacks are for all of a process */

void fail(Wire *wire, int failed)
{
    wire->wire.failed = failed;
    wire->wire.clock->stopped = true;
}

void fire(Wire *wire);

/* When SimGrid's clock stands for this nanosecond of ours. */
double date_of(uint64_t at_ns)
{
    return (static_cast<double>(at_ns) / NS) + (LATE_NS / NS);
}

/* Sets the timer to the first event, or to the present one, whose messages SimGrid is to begin. */
void arm(Wire *wire)
{
    uint64_t next_ns = wire->program->next(wire->wire.clock);
    if (!wire->to_begin.empty() && !wire->wire.clock->stopped)
        next_ns = wire->wire.clock->now_ns;
    if (wire->timer && wire->timer_ns == next_ns)
        return;
    if (wire->timer) {
        wire->timer->remove();
        wire->timer = nullptr;
    }
    if (next_ns == SIM_CLOCK_NEVER)
        return;
    wire->timer_ns = next_ns;
    wire->timer =
        Timer::set(std::max(date_of(next_ns), s4u::Engine::get_clock()), [wire]() { fire(wire); });
}

/* Everything of this nanosecond happens. */
void happen(Wire *wire, uint64_t at_ns)
{
    while (wire->program->next(wire->wire.clock) == at_ns)
        wire->program->step(wire->wire.clock);
}

/* Of a flow, if nothing begins or ends before; as SimGrid's engine asks for it. Now, when one has
 * ended and we have not been called yet: timers run before. */
double first_end()
{
    double now = s4u::Engine::get_clock(), first = std::numeric_limits<double>::infinity();
    for (simgrid::kernel::resource::Model *model : engine()->get_all_models()) {
        if (!model->get_finished_action_set()->empty())
            return now;
        double after = model->next_occurring_event(now);
        if (after >= 0)
            first = std::min(first, now + after);
    }
    return first;
}

void run_ahead(Wire *wire)
{
    double end = first_end();
    wire->ahead = true;
    while (wire->to_begin.empty()) {
        uint64_t next_ns = wire->program->next(wire->wire.clock);
        if (next_ns == SIM_CLOCK_NEVER || date_of(next_ns) + APART_S >= end)
            break;
        happen(wire, next_ns);
    }
    wire->ahead = false;
}

int start(Wire *wire, struct sim_wire_flow *flow);

void fire(Wire *wire)
{
    wire->timer = nullptr;
    wire->ended.clear();
    for (struct sim_wire_flow *flow : wire->to_begin) {
        int failed = start(wire, flow);
        if (failed)
            fail(wire, failed);
    }
    wire->to_begin.clear();
    happen(wire, wire->timer_ns);
    run_ahead(wire);
    arm(wire);
}

/* A flow's last octet has left: an event of our clock. */
void is_through(void *context, uint64_t number)
{
    Wire *wire = static_cast<Wire *>(context);
    wire->through++;
    wire->program->is_through(&wire->wire, reinterpret_cast<struct sim_wire_flow *>(number),
                              wire->wire.clock->now_ns);
}

/* SimGrid's flow has ended. */
void end(Wire *wire, struct sim_wire_flow *flow)
{
    s4u::Comm *comm = static_cast<s4u::Comm *>(flow->backend);
    flow->backend = nullptr;
    wire->ended.emplace_back(comm, false);
    if (wire->wire.clock->stopped)
        return;
    double date_ns = s4u::Engine::get_clock() * NS;
    wire->program->plan(wire->wire.clock, static_cast<uint64_t>(std::ceil(date_ns - TOLERANCE_NS)),
                        flow->end_sequence, is_through, wire, reinterpret_cast<uint64_t>(flow));
    arm(wire);
}

void on_completion(const s4u::Activity &activity)
{
    struct sim_wire_flow *flow = activity.get_data<struct sim_wire_flow>();
    if (!the_wire || !flow)
        return;
    try {
        if (activity.get_state() != s4u::Activity::State::FINISHED)
            fail(the_wire, -EIO);
        end(the_wire, flow);
    } catch (const std::exception &) {
        fail(the_wire, -ENOMEM);
    }
}

/* What LATE_NS takes at the lowest rate of the route, and what is left of the message. */
uint64_t payload(const struct sim_topology *topology, const struct sim_wire_flow *flow)
{
    double rate = topology->links[flow->links[0]].octets_per_ns;
    for (uint32_t i = 1; i < flow->link_count; i++)
        rate = std::min(rate, topology->links[flow->links[i]].octets_per_ns);
    double units = (flow->under_way->octets - rate * LATE_NS) * UNITS;
    return units < 1 ? 1 : static_cast<uint64_t>(std::llround(units));
}

int start(Wire *wire, struct sim_wire_flow *flow)
{
    try {
        s4u::CommPtr comm =
            s4u::Comm::sendto_init(wire->zone->host(flow->from), wire->zone->host(flow->to));
        comm->set_payload_size(payload(wire->wire.topology, flow));
        comm->set_data(flow);
        comm->start();
        flow->backend = comm.detach();
        return 0;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (const std::exception &) {
        return -EIO;
    }
}

int wire_begin(struct sim_wire *of, struct sim_wire_flow *flow)
{
    Wire *wire = reinterpret_cast<Wire *>(of);
    wire->begun++;
    if (!wire->ahead)
        return start(wire, flow);
    try {
        wire->to_begin.push_back(flow);
        return 0;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    }
}

int wire_run(struct sim_wire *of)
{
    Wire *wire = reinterpret_cast<Wire *>(of);
    if (wire->begun != wire->through)
        return -ECANCELED; /* SimGrid is ahead of our clock */
    try {
        arm(wire);
        engine()->run();
        wire->ended.clear();
        return 0;
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (const std::exception &) {
        return -EIO;
    }
}

/* SimGrid's network stays: it has nothing to take one away. */
void wire_close(struct sim_wire *of)
{
    Wire *wire = reinterpret_cast<Wire *>(of);
    if (wire->timer)
        wire->timer->remove();
    the_wire = nullptr;
    delete wire;
}

const struct sim_wire_ops wire_ops = {wire_begin, wire_run, wire_close};

struct sim_wire *open_wire(const struct sim_simgrid_program *program, struct sim_clock *clock,
                           struct sim_topology *topology, char *why, size_t size)
{
    static bool opened;
    if (opened) {
        std::snprintf(why, size, "SimGrid runs once a process: start another one for the next run");
        return nullptr;
    }
    opened = true;
    try {
        engine();
        Wire *wire = new Wire();
        wire->wire.ops = &wire_ops;
        wire->wire.clock = clock;
        wire->wire.topology = topology;
        wire->program = program;
        wire->zone = make_zone(topology);
#if SIMGRID_VERSION >= 33400
        s4u::Comm::on_completion_cb([](const s4u::Comm &comm) { on_completion(comm); });
#else
        s4u::Activity::on_completion_cb(on_completion);
#endif
        the_wire = wire;
        return &wire->wire;
    } catch (const std::bad_alloc &) {
        std::snprintf(why, size, "no memory for SimGrid's network of %u ports", topology->ports);
    } catch (const std::exception &e) {
        std::snprintf(why, size, "SimGrid: %s", e.what());
    }
    return nullptr;
}

/* ---- a platform from a file -------------------------------------------------------------- */

struct Refused {
    int error; /* -errno */
    std::string why;
};

struct Platform {
    std::vector<const s4u::Host *> hosts; /* by port */
    std::vector<struct sim_link> links;
    std::unordered_map<const s4u::Link *, uint32_t> numbers; /* of links */
    std::unordered_map<uint64_t, std::vector<uint32_t>> routes;
};

/* More links than a route may have, or none: empty. */
std::vector<uint32_t> find_route(const Platform &platform, uint32_t from, uint32_t to)
{
    std::vector<s4u::Link *> links;
    double latency = 0;
    platform.hosts[from]->route_to(platform.hosts[to], links, &latency);
    std::vector<uint32_t> route;
    for (const s4u::Link *link : links) {
        auto found = platform.numbers.find(link);
        if (found == platform.numbers.end() || route.size() == SIM_WIRE_MAX_ROUTE)
            return {};
        route.push_back(found->second);
    }
    return route;
}

uint32_t platform_route(const struct sim_topology *topology, uint32_t from, uint32_t to,
                        uint32_t links[SIM_WIRE_MAX_ROUTE])
{
    try {
        /* Only what has been found is remembered; nobody sees a difference. */
        Platform *platform = static_cast<Platform *>(const_cast<void *>(topology->context));
        uint64_t pair = static_cast<uint64_t>(from) << 32 | to;
        auto known = platform->routes.find(pair);
        if (known == platform->routes.end())
            known = platform->routes.emplace(pair, find_route(*platform, from, to)).first;
        std::copy(known->second.begin(), known->second.end(), links);
        return static_cast<uint32_t>(known->second.size());
    } catch (const std::exception &) {
        return 0;
    }
}

void platform_release(struct sim_topology *topology)
{
    delete static_cast<const Platform *>(topology->context);
}

std::string number(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

void add_link(Platform *platform, const s4u::Link *of)
{
    const std::string name = of->get_name();
    struct sim_link link = {};
    double rate = of->get_bandwidth(), latency_ns = std::round(of->get_latency() * NS);
    if (of->get_sharing_policy() == s4u::Link::SharingPolicy::WIFI)
        throw Refused{-ENOTSUP, "link " + name + " is WIFI, which kbtp has not"};
    if (!(rate > 0) || !std::isfinite(rate))
        throw Refused{-EINVAL, "link " + name + " has a bandwidth of " + number(rate) +
                                   " octets a second: give it more than 0"};
    if (!(latency_ns >= 0) || latency_ns > 4e9)
        throw Refused{-EINVAL, "link " + name + " has a latency of " + number(of->get_latency()) +
                                   " seconds: give it 0 to 4"};
    std::snprintf(link.name, sizeof link.name, "%s", name.c_str());
    link.octets_per_ns = rate / NS;
    link.latency_ns = static_cast<uint32_t>(latency_ns);
    link.fat_pipe = of->get_sharing_policy() == s4u::Link::SharingPolicy::FATPIPE;
    platform->numbers.emplace(of, static_cast<uint32_t>(platform->links.size()));
    platform->links.push_back(link);
}

void load(Platform *platform, const char *file, const struct sim_host *hosts, uint32_t ports)
{
    engine()->load_platform(file);
    for (uint32_t i = 0; i < ports; i++) {
        const s4u::Host *host = engine()->host_by_name_or_null(hosts[i].name);
        if (!host)
            throw Refused{-ENOENT, std::string("there is no host ") + hosts[i].name +
                                       ", for which " + hosts[i].asked + " asks"};
        platform->hosts.push_back(host);
    }
    for (const s4u::Link *link : engine()->get_all_links())
        add_link(platform, link);
}

/* From each port to these many others, evenly spread, and back. */
constexpr uint32_t CHECKED = 256;

void check_route(const Platform &platform, const struct sim_host *hosts, uint32_t from, uint32_t to)
{
    if (find_route(platform, from, to).empty())
        throw Refused{-ENETUNREACH, std::string("from host ") + hosts[from].name + " to " +
                                        hosts[to].name +
                                        " there is no route, or one of more than " +
                                        std::to_string(SIM_WIRE_MAX_ROUTE) + " links"};
}

void check_routes(const Platform &platform, const struct sim_host *hosts)
{
    uint32_t ports = static_cast<uint32_t>(platform.hosts.size());
    uint32_t stride = ports / CHECKED + 1;
    for (uint32_t from = 0; from < ports; from++)
        for (uint32_t to = (from + 1) % stride; to < ports; to += stride)
            if (from != to) {
                check_route(platform, hosts, from, to);
                check_route(platform, hosts, to, from);
            }
}

/* Only what can be said in one line. */
std::string first_line(const std::string &text)
{
    size_t begin = text.find_first_not_of(" \n");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

[[noreturn]] void try_in_child(const char *file, const struct sim_host *hosts, uint32_t ports,
                               int out)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGABRT, SIG_DFL);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    int error = -EINVAL;
    std::string why;
    try {
        Platform platform;
        load(&platform, file, hosts, ports);
        check_routes(platform, hosts);
        _exit(0);
    } catch (const Refused &refused) {
        error = refused.error;
        why = refused.why;
    } catch (const std::exception &e) {
        why = first_line(e.what());
    }
    if (write(out, why.data(), why.size()) < 0)
        _exit(EINVAL);
    _exit(-error);
}

/*
 * SimGrid ends the process when it does not like a platform: another one tries it first. It throws
 * what is wrong.
 */
void check_file(const char *file, const struct sim_host *hosts, uint32_t ports)
{
    int ends[2];
    struct stat found;
    if (access(file, R_OK) != 0 || stat(file, &found) != 0) /* SimGrid would look elsewhere, too */
        throw Refused{-errno, std::generic_category().message(errno)};
    if (!S_ISREG(found.st_mode)) /* and wait for ever for what comes from a pipe */
        throw Refused{-EINVAL, "is no regular file, give one"};
    if (pipe(ends) != 0)
        throw Refused{-errno, "no pipe to the process that tries it"};
    pid_t child = fork();
    if (child == 0)
        try_in_child(file, hosts, ports, ends[1]);
    int error = errno;
    close(ends[1]);
    std::string said;
    char some[512];
    for (ssize_t got; child > 0 && (got = read(ends[0], some, sizeof some)) != 0;)
        if (got > 0)
            said.append(some, static_cast<size_t>(got));
        else if (errno != EINTR)
            break;
    close(ends[0]);
    if (child < 0)
        throw Refused{-error, "no process that tries it"};
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status == 0)
        return;
    said = first_line(said);
    throw Refused{WIFEXITED(status) ? -WEXITSTATUS(status) : -EINVAL,
                  said.empty() ? "SimGrid cannot read it" : said};
}

int read_platform(const char *file, const struct sim_host *hosts, uint32_t ports,
                  struct sim_topology *topology, char *why, size_t size)
{
    static bool loaded;
    Platform *platform = nullptr;
    int error = -EINVAL;
    try {
        if (loaded || the_wire)
            throw Refused{-EBUSY, "SimGrid reads one platform a process, before it runs"};
        check_file(file, hosts, ports);
        loaded = true;
        platform = new Platform();
        load(platform, file, hosts, ports);
        *topology = {};
        topology->ports = ports;
        topology->links_count = static_cast<uint32_t>(platform->links.size());
        topology->links = platform->links.data();
        topology->route = platform_route;
        topology->context = platform;
        topology->release = platform_release;
        return 0;
    } catch (const Refused &refused) {
        error = refused.error;
        bool named = refused.why.rfind(file, 0) == 0; /* by SimGrid's parser, with a line */
        std::snprintf(why, size, "%s%s%s", named ? "" : file, named ? "" : ": ",
                      refused.why.c_str());
    } catch (const std::bad_alloc &) {
        error = -ENOMEM;
        std::snprintf(why, size, "%s: no memory", file);
    } catch (const std::exception &e) {
        std::snprintf(why, size, "%s: %s", file, first_line(e.what()).c_str());
    }
    delete platform;
    return error;
}

} // namespace

/* What the module shows. */
extern "C" {
extern const struct sim_simgrid_module kbtp_simgrid __attribute__((visibility("default")));
const struct sim_simgrid_module kbtp_simgrid = {SIM_SIMGRID_BUILD, open_wire, read_platform};
}
