// Built outside Headrace's tree against what was installed, once with the
// shared and once with the static library.
#include <cstdio>

#include "headrace/headrace.h"

int main() {
  std::printf("headrace %s\n", headrace::Version());
  namespace tf = headrace::tf;
  tf::Tensor x = tf::Tensor::From<float>({1, 2, 3, 4}, {2, 2});
  std::printf("%s\n", tf::MatMul(x, x).ToString().c_str());
  tf::layers::Dense dense(1, {.kernel_initializer = "ones"});
  for (const tf::data::Element& e :
       tf::data::Dataset::FromTensorSlices({x}).Batch(2)) {
    std::printf("%s\n", dense(e[0]).ToString().c_str());
  }
  return 0;
}
