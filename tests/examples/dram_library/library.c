#define EDGEWATT_DRAM_IMPLEMENTATION
#include "dram/edgewatt_dram.h"
