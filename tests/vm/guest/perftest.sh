#!/bin/sh
# limit: 120 s
# Two processes that know nothing of this project exchange SENDs and WRITEs over a connection of
# rdma_cm: what fails here is the guest's. Times are those of an emulator, without worth.
#
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck source=tests/vm/lib.sh
. /lib.sh

perftest ib_send_lat -s 64 -n 200 && echo "send latency, us: $figures"
perftest ib_write_lat -s 64 -n 200 && echo "write latency, us: $figures"
perftest ib_write_bw -s 65536 -n 50 && echo "write bandwidth, MiB/s: $figures"
conclude
