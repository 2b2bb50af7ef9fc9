/* fifo: the ways of a set are filled in turn, so the line filled longest ago goes. */
#pragma once

static const edgewatt_policy edgewatt_policy_fifo = {.version = EDGEWATT_POLICY_VERSION, .flags = EDGEWATT_IN_TURN};
