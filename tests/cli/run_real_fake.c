/* SPDX-License-Identifier: BSD-3-Clause */
/* `kbtp run-real` over the rdma-core for tests: run-real-fake siw|rxe ARGUMENT... */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "tests/net/fake/fake.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return CLI_BAD_INPUT;
    const struct fake_config config = {.kind = strcmp(argv[1], "siw") == 0 ? FAKE_SIW : FAKE_RXE,
                                       .devices = 1};
    fake_open(&config);
    int status = cli_run_real.run(argc - 1, argv + 1);
    uint32_t left = fake_close();
    if (left != 0 || fake_breaches() != 0) {
        (void)fprintf(stderr, "left behind: %u; rules of rdma-core broken: %s\n", left,
                      fake_breaches() ? fake_breach() : "none");
        return 99;
    }
    return status;
}
