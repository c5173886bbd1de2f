#include "op/gradient_source.h"

#include <utility>

namespace headrace {
namespace {

constinit thread_local const GradientSource* current_source = nullptr;

}  // namespace

GradientSource::GradientSource(std::string name)
    : name_(std::move(name)), around_(current_source) {
  current_source = this;
}

GradientSource::~GradientSource() { current_source = around_; }

const std::string& GradientSource::Current() {
  static const std::string* const none = new std::string("gradients");
  return current_source ? current_source->name_ : *none;
}

}  // namespace headrace
