// A worker of python/tests/distribute/test_with_cpp_workers.py, whose other
// workers are Python's:
//
//   ring_worker loop|fit|slices|loop_of_two|fit_of_two PREFIX
//
// trains in step with them ("of_two": with two replicas each), writes its
// weights to the checkpoint PREFIX, and prints the last loss (and mean absolute
// error) of all workers.
#include <headrace/headrace.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace tf = headrace::tf;
using tf::distribute::MultiWorkerMirroredStrategy;
using tf::distribute::ReduceOp;

namespace {

constexpr int64_t kRows = 4, kSteps = 6;

// This worker's rows: others than the Python worker's of that number would be.
std::pair<tf::Tensor, tf::Tensor> Data(float rank) {
  std::vector<float> x, y;
  for (int i = 0; i < 2 * kRows; ++i) {
    x.push_back(0.125f * static_cast<float>(i) - rank * 0.25f);
  }
  for (int i = 0; i < kRows; ++i) {
    y.push_back(0.5f * static_cast<float>(i) + rank);
  }
  return {tf::Tensor::From<float>(x, {kRows, 2}),
          tf::Tensor::From<float>(y, {kRows, 1})};
}

float Loop(const MultiWorkerMirroredStrategy& strategy,
           tf::layers::Layer& model, tf::Optimizer& adam) {
  const auto [x, y] = Data(static_cast<float>(strategy.rank()));
  auto step = tf::function([&](const tf::Tensor& x, const tf::Tensor& y) {
    const auto parts = strategy.Split({x, y});
    const auto losses = strategy.Run([&](int replica) {
      tf::GradientTape tape;
      const tf::Tensor error = model(parts[replica][0]) - parts[replica][1];
      const tf::Tensor loss =
          tf::Mean(error * error, tf::Tensor::From<int32_t>({0, 1})) /
          static_cast<float>(strategy.num_replicas());
      const auto variables = model.trainable_variables();
      adam.Apply(tape.gradient(loss, variables), variables);
      return loss;
    });
    return strategy.Reduce(ReduceOp::kSum, losses);
  });
  tf::Tensor loss;
  for (int64_t i = 0; i < kSteps; ++i) loss = step(x, y);
  return loss.item<float>();
}

void Fit(const MultiWorkerMirroredStrategy& strategy, tf::layers::Layer& model,
         tf::Optimizer& adam) {
  tf::metrics::MeanAbsoluteError error;
  const auto [x, y] = Data(static_cast<float>(strategy.rank()));
  const auto batches = tf::data::Dataset::FromTensors({x, y}).Repeat(kSteps);
  const auto last =
      tf::train::Fit(model, adam, tf::losses::MeanSquaredError(), batches,
                     {.epochs = 2, .metrics = {&error}, .verbose = false});
  std::printf("%.9g %.9g\n", last.loss, last.metrics[0]);
}

// Rows of a table that each worker looks up for itself.
void Slices(const MultiWorkerMirroredStrategy& strategy, tf::Module& module) {
  tf::layers::Embedding rows_of(4, 2, tf::initializers::Constant(1));
  rows_of.Build(tf::TensorShape{2});
  const tf::Variable table = module.Track("table", rows_of.embeddings());
  tf::SGD sgd(0.5);
  auto step = tf::function([&](const tf::Tensor& rows) {
    tf::GradientTape tape;
    const tf::Tensor found = rows_of(rows);
    const tf::Tensor loss =
        tf::Sum(found * found, tf::Tensor::From<int32_t>({0, 1}));
    const std::vector<tf::Variable> variables = {table};
    sgd.Apply(tape.gradient(loss, variables), variables);
  });
  const int32_t rank = strategy.rank();
  std::vector<int32_t> rows(static_cast<size_t>(rank + 1), rank);
  step(tf::Tensor::From<int32_t>(rows));
}

int Run(const std::string& way, const std::string& prefix) {
  const bool of_two = way.ends_with("of_two");
  const MultiWorkerMirroredStrategy strategy({}, of_two ? 2 : 1);
  const MultiWorkerMirroredStrategy::Scope scope(strategy);
  tf::SetRandomSeed(strategy.rank() + 7);  // the first worker's weights count
  tf::Module module;
  tf::layers::Sequential model(tf::layers::Dense(3, {.activation = "tanh"}),
                               tf::layers::Dense(1));
  if (way == "slices") {
    Slices(strategy, module);
  } else {
    model.Build({kRows, 2});
    int64_t number = 0;
    for (const tf::Variable& v : model.variables()) {
      module.Track(std::to_string(number++), v);
    }
    tf::Adam adam(0.1);
    if (way.starts_with("fit")) {
      Fit(strategy, model, adam);
    } else {
      std::printf("%.9g\n", Loop(strategy, model, adam));
    }
  }
  tf::Checkpoint checkpoint({{"module", module}});
  checkpoint.write(prefix);
  strategy.Barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return Run(argv[1], argv[2]);
  } catch (const tf::Error& e) {
    std::fprintf(stderr, "ring_worker: %s\n", e.what());
    return 1;
  }
}
