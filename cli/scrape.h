/* SPDX-License-Identifier: BSD-3-Clause */
/* A number among those that a program shows to Prometheus. */
#ifndef KBTP_CLI_SCRAPE_H
#define KBTP_CLI_SCRAPE_H

/*
 * Gets http://ADDRESS/metrics and reads the number `name`, which has no labels. CLI_DONE, or what
 * to exit with, after a complaint. Waits at most `timeout` seconds for each part of an answer.
 */
int scrape(const char *address, const char *name, double timeout, double *number);

#endif
