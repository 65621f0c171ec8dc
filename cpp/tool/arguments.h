// The command line of gnnperf-client.
#pragma once

#include <string>
#include <vector>

struct Arguments {
  std::string verb;
  std::vector<std::string> files;  // in order
  std::vector<std::string> gpus;
  std::string device, family;
  int64_t k = 5, schedules = 3, threads = 1, repeat = 200, batch = 1;
  bool help = false;
};

extern const char USAGE[];

// Throws gnnperf::Error for what it does not know.
Arguments parse(int count, const char* const* words);
