/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds and loads the module that has SimGrid. */
#include "sim/timed/wire_simgrid.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MODULE "kbtp-simgrid.so"
/* The build says where it installs the module. */
#ifndef SIM_SIMGRID_INSTALLED
#define SIM_SIMGRID_INSTALLED "/usr/local/lib/kbtp"
#endif

/* Where it may be, from the program's directory: beside it, in a build directory, installed. */
static const char *const places[] = {"", "../", "../../", "../lib/kbtp/"};

static const struct sim_simgrid_program program = {sim_clock_plan, sim_clock_next, sim_clock_step,
                                                   sim_wire_is_through};

/* The path of the module. KBTP_SIMGRID names another one. */
static bool find(char path[static PATH_MAX])
{
    const char *named = getenv("KBTP_SIMGRID");
    if (named && named[0])
        return snprintf(path, PATH_MAX, "%s", named) < PATH_MAX;
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self);
    if (length > 0 && length < (ssize_t)sizeof self) {
        while (length > 0 && self[length - 1] != '/')
            length--;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            int written = snprintf(path, PATH_MAX, "%.*s%s" MODULE, (int)length, self, places[i]);
            if (written < PATH_MAX && access(path, R_OK) == 0)
                return true;
        }
    }
    snprintf(path, PATH_MAX, "%s", SIM_SIMGRID_INSTALLED "/" MODULE);
    return access(path, R_OK) == 0;
}

/* Stays loaded: SimGrid does not survive being unloaded. */
static const struct sim_simgrid_module *load(char *why, size_t size)
{
    static const struct sim_simgrid_module *loaded;
    if (loaded)
        return loaded;
    char path[PATH_MAX];
    if (!find(path)) {
        snprintf(why, size,
                 "SimGrid's part of kbtp, " MODULE
                 ", is neither beside the program nor in " SIM_SIMGRID_INSTALLED
                 ": build and install it, or use the fifo wire");
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, size, "%s: install SimGrid %s, or use the fifo wire", dlerror(),
                 "(Debian: libsimgrid3.32)");
        return NULL;
    }
    const struct sim_simgrid_module *module = dlsym(library, SIM_SIMGRID_SYMBOL);
    if (!module || module->build != SIM_SIMGRID_BUILD) {
        snprintf(why, size, "%s is not of this version of kbtp: build both together", path);
        dlclose(library);
        return NULL;
    }
    loaded = module;
    return loaded;
}

struct sim_wire *sim_wire_simgrid(struct sim_clock *clock, struct sim_topology *topology, char *why,
                                  size_t size)
{
    const struct sim_simgrid_module *module = load(why, size);
    return module ? module->open(&program, clock, topology, why, size) : NULL;
}

int sim_topology_read(const char *platform_xml, const struct sim_host *hosts, uint32_t ports,
                      struct sim_topology *topology, char *why, size_t size)
{
    const struct sim_simgrid_module *module = load(why, size);
    return module ? module->read(platform_xml, hosts, ports, topology, why, size) : -ENOSYS;
}
