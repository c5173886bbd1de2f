#include "op/processor.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace headrace {
namespace {

class PlacedKernel : public Kernel {
 public:
  PlacedKernel(std::unique_ptr<Kernel> kernel, int index)
      : kernel_(std::move(kernel)), index_(index) {}
  Status Run(KernelContext& c) override {
    const ProcessorScope scope(index_);
    return kernel_->Run(c);
  }
  bool own_outputs() const override { return kernel_->own_outputs(); }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const int index_;
};

}  // namespace

std::optional<int> ProcessorNamed(StringView device) {
  // The last part, of which "device:" may be left out.
  const size_t slash = device.rfind('/');
  if (slash != StringView::npos) device.remove_prefix(slash + 1);
  const std::string lower = absl::AsciiStrToLower(device);
  StringView part = lower;
  absl::ConsumePrefix(&part, "device:");
  int index = 0;
  if (!absl::ConsumePrefix(&part, "cpu:") || !absl::SimpleAtoi(part, &index) ||
      index < 0) {
    return std::nullopt;
  }
  return index;
}

std::string ProcessorName(int index) {
  return absl::StrCat("/job:localhost/replica:0/task:0/device:CPU:", index);
}

std::vector<std::string> ProcessorNames(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(ProcessorName(i));
  return names;
}

std::unique_ptr<Kernel> OnProcessor(std::unique_ptr<Kernel> kernel, int index) {
  return std::make_unique<PlacedKernel>(std::move(kernel), index);
}

}  // namespace headrace
