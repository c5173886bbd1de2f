// Any bytes as a token file, and as what a request shows.
#include "serving/access/tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace::serving;
  const std::string text(data, size);
  const auto tokens = Tokens::Parse(text);
  if (tokens.ok()) (void)(*tokens)->Check({text});
  const auto one = Tokens::Parse("one");
  (void)(*one)->Check({text});
  return 0;
}
