// A simulator's side of edgewatt_dram: play a trace of requests, in order, each as soon as it has come and is accepted.
//
//     main FILE TRACE DONE     FILE of `edgewatt part library`; TRACE: 64-bit words address, is write, arrival per request;
//                              DONE: the clock at which each request was done, as 64-bit words
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

#include "dram/edgewatt_dram.h"

static void done(void *user, uint64_t id, int64_t, int64_t clock) {
    (*static_cast<std::vector<int64_t> *>(user))[id] = clock;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    std::vector<int64_t> words;
    if (std::FILE *file = std::fopen(argv[2], "rb")) {
        int64_t word;
        while (std::fread(&word, sizeof word, 1, file) == 1) words.push_back(word);
        std::fclose(file);
    }
    std::vector<int64_t> clocks(words.size() / 3, -1);
    char error[200];
    edgewatt_dram *memory = edgewatt_dram_open(argv[1], done, &clocks, error, sizeof error);
    if (!memory) {
        std::fprintf(stderr, "%s\n", error);
        return 1;
    }
    std::clock_t begin = std::clock();
    for (size_t k = 0; k < clocks.size(); k++) {
        edgewatt_dram_advance(memory, words[3 * k + 2]);
        while (!edgewatt_dram_send(memory, static_cast<uint64_t>(words[3 * k]), words[3 * k + 1] != 0, k)) {
            int64_t next = edgewatt_dram_next_event(memory);
            edgewatt_dram_advance(memory, next > edgewatt_dram_clock(memory) ? next : next + 1);
        }
    }
    edgewatt_dram_drain(memory);
    double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    edgewatt_dram_statistics s = edgewatt_dram_read_statistics(memory);
    std::printf("%.6f %lld %lld %lld %lld %lld\n", seconds, (long long)s.activates, (long long)s.read_bursts,
                (long long)s.write_bursts, (long long)s.refreshes, (long long)s.row_hits);
    edgewatt_dram_close(memory);
    if (std::FILE *file = std::fopen(argv[3], "wb")) {
        std::fwrite(clocks.data(), sizeof clocks[0], clocks.size(), file);
        std::fclose(file);
    }
    return 0;
}
