// A first program: fits a line, with a traced training step.
#include <headrace/headrace.h>

#include <cstdio>

namespace tf = headrace::tf;

int main() {
  tf::Tensor x = tf::Tensor::From<float>({-1, 0, 1, 2});
  tf::Tensor y = 3.0 * x + 1.0;
  tf::Variable w(tf::Tensor(0.0f)), b(tf::Tensor(0.0f));
  tf::SGD sgd(0.1f);

  auto step = tf::function([&](const tf::Tensor& x, const tf::Tensor& y) {
    tf::GradientTape tape;
    tf::Tensor error = w * x + b - y;
    tf::Tensor loss = tf::Mean(error * error, tf::Tensor(0));
    std::vector<tf::Variable> variables = {w, b};
    sgd.Apply(tape.gradient(loss, variables), variables);
    return loss;
  });

  for (int i = 0; i < 200; ++i) step(x, y);
  std::printf("y = %.3f x + %.3f\n", w.value().item<float>(),
              b.value().item<float>());
  std::printf("%s\n", tf::Pack({w, b}).ToString().c_str());
}
