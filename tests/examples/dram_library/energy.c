/* A simulator with timing of its own: it issues commands, and edgewatt_dram says what they cost.
 *
 *     energy FILE COMMANDS DBI END BURST   COMMANDS: per command 64-bit words clock, command,
 *     address, 1 if bytes follow, and then those
 *     of the BURST bytes of a burst; END: the clock up to which energy is asked for */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "dram/edgewatt_dram.h"

int main(int argc, char **argv) {
    char error[200];
    int64_t word[4];
    uint8_t bytes[1024];
    if (argc != 6) return 2;
    edgewatt_dram_energy *energy = edgewatt_dram_energy_open(argv[1], atoi(argv[3]), error, sizeof error);
    if (!energy) return fprintf(stderr, "%s\n", error), 1;
    FILE *file = fopen(argv[2], "rb");
    const size_t burst = (size_t)atoi(argv[5]);
    while (file && fread(word, sizeof word, 1, file) == 1) {
        if (word[3] && fread(bytes, burst, 1, file) != 1) return 2;
        if (!edgewatt_dram_energy_command(energy, word[0], (int)word[1], (uint64_t)word[2], word[3] ? bytes : NULL)) {
            fprintf(stderr, "clock %" PRId64 ": %s\n", word[0], edgewatt_dram_energy_error(energy));
            return 1;
        }
    }
    if (file) fclose(file);
    edgewatt_dram_energy_pj s = edgewatt_dram_energy_read(energy, atoll(argv[4]));
    printf("%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", s.activate, s.precharge, s.read, s.write,
           s.refresh, s.background, s.data_wires, s.strobes, s.clocks, s.command_wires);
    edgewatt_dram_energy_close(energy);
    return 0;
}
