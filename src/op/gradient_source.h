// Which call of tf.gradients is at work on this thread: arrays of gradients are
// kept by its name.
#pragma once

#include <string>

namespace headrace {

class GradientSource {
 public:
  explicit GradientSource(std::string name);
  ~GradientSource();
  GradientSource(const GradientSource&) = delete;

  // The innermost one's name; "gradients" where there is none.
  static const std::string& Current();

 private:
  const std::string name_;
  const GradientSource* const around_;
};

}  // namespace headrace
