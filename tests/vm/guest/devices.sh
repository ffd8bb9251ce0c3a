#!/bin/sh
# The device is there and its port is up.
ibv_devinfo -v -d "$DEVICE" >devinfo || exit
grep -E 'transport|max_qp:|max_mr:|max_sge:|atomic_cap|state|active_mtu|link_layer' devinfo
grep -q 'state:.*PORT_ACTIVE' devinfo
