// The one error that this library throws: bad input, in one line (expected, got, what to do).
#pragma once

#include <stdexcept>
#include <string>

namespace gnnperf {

class Error : public std::runtime_error {
 public:
  // The text becomes one line of valid UTF-8, whatever it quotes.
  explicit Error(const std::string& text);
};

}  // namespace gnnperf
