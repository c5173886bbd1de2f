#include "cc/layer/spatial.h"

#include <limits>

namespace headrace::tf::internal {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

}  // namespace

void CheckSizes(const std::vector<int64_t>& sizes, const char* name,
                bool zero) {
  bool fit = true;
  for (const int64_t n : sizes) fit = fit && n >= (zero ? 0 : 1) && n <= kMost;
  if (fit) return;
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("The `", name, "` argument must be a tuple of ",
                     sizes.size(),
                     " integers. Received: ", TensorShape(sizes).ToString()));
}

std::string PaddingOf(const std::string& padding, bool causal) {
  if (padding == "valid" || padding == "VALID") return "VALID";
  if (padding == "same" || padding == "SAME") return "SAME";
  if (causal && (padding == "causal" || padding == "CAUSAL")) return "CAUSAL";
  Throw(ErrorCode::kInvalidArgument,
        "The `padding` argument must be a list/tuple or one of {'valid', "
        "'same'" +
            std::string(causal ? ", 'causal'" : "") +
            "}. Received: " + padding);
}

bool ChannelsFirst(const std::string& format) {
  if (format == "channels_first") return true;
  if (format == "channels_last") return false;
  Throw(ErrorCode::kInvalidArgument,
        "The `data_format` argument must be one of \"channels_first\", "
        "\"channels_last\". Received: " +
            format);
}

std::vector<int64_t> Spread(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> all = {1};
  all.insert(all.end(), sizes.begin(), sizes.end());
  all.push_back(1);
  return all;
}

}  // namespace headrace::tf::internal
