// Checks in C++ that Python asks for by name, and what they are written with.
#pragma once

#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include "headrace/headrace.h"

namespace cross {

namespace tf = headrace::tf;

std::map<std::string, std::function<void()>>& Checks();
struct Check {
  Check(const char* name, std::function<void()> body) {
    Checks()[name] = std::move(body);
  }
};

template <typename A, typename B>
void Same(const A& got, const B& wanted, const char* text, int line) {
  if (got == wanted) return;
  std::ostringstream out;
  out << "line " << line << ": " << text << " is " << got << ", not " << wanted;
  throw std::runtime_error(out.str());
}
#define CROSS_SAME(got, wanted) cross::Same(got, wanted, #got, __LINE__)

// The error that call() throws, which must be an E.
template <typename E, typename F>
E Thrown(const F& call) {
  try {
    call();
  } catch (const E& e) {
    return e;
  }
  throw std::runtime_error("nothing was thrown");
}

inline bool Has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  throw std::runtime_error("'" + part + "' is not in: " + text);
}

}  // namespace cross
