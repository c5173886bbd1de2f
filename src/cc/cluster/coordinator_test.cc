// A coordinator, servers of this process, and workers that are processes of
// their own where they die.
#include <optional>

#include "cc/cluster/test_tasks.h"

namespace headrace::tf::distribute {
namespace {

TEST(Partitioners, CountParts) {
  const auto parts = [](const Partitioner& p, const TensorShape& shape) {
    return p(shape, DType::kFloat32);
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(parts(partitioners::FixedShards(3), {7, 2}), (List{3, 1}));
  EXPECT_EQ(parts(partitioners::FixedShards(3), {2}), (List{2}));
  EXPECT_EQ(parts(partitioners::MinSize(8, 10), {9}), (List{5}));
  EXPECT_EQ(parts(partitioners::MinSize(8, 2), {9}), (List{2}));
  EXPECT_EQ(parts(partitioners::MaxSize(16), {9, 2}), (List{5, 1}));
  EXPECT_EQ(parts(partitioners::MaxSize(16, 2), {9, 2}), (List{2, 1}));
  EXPECT_EQ(ErrorOfCall([] { partitioners::FixedShards(0); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOfCall([] { partitioners::MinSize(0); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorOfCall([] { partitioners::MaxSize(8, -1); }).code(),
            ErrorCode::kInvalidArgument);
}

#ifdef HR_GRPC_TESTS

TEST(ParameterServers, RefusesClustersAndTasks) {
  const auto error = [](const TaskConfig& task) {
    return ErrorOfCall([&] { ParameterServerStrategy{task}; });
  };
  const std::string a = FreeAddress(), b = FreeAddress(), c = FreeAddress();
  const ClusterSpec whole{{"ps", {a}}, {"worker", {b}}};
  const std::pair<TaskConfig, const char*> cases[] = {
      {{}, "no \"ps\""},
      {{.cluster = {{"ps", {a}}}}, "no \"worker\""},
      {{.cluster = whole, .job = "worker", .index = 0}, "worker:0"},
      {{.cluster = whole, .job = "ps", .index = 0}, "ps:0"},
      {{.cluster = {{"ps", {a}}, {"worker", {b}}, {"chief", {c, c}}}},
       "one chief"},
      {{.cluster = {{"ps", {"bad"}}, {"worker", {b}}}}, "\"bad\""},
  };
  for (const auto& [task, part] : cases) {
    const Error e = error(task);
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    EXPECT_TRUE(Says(e, part)) << e.what();
  }
  // Nobody listens: servers are waited for, as long as was said.
  const Error e = ErrorOfCall(
      [&] { ParameterServerStrategy(whole, {.timeout_seconds = 0.3}); });
  EXPECT_TRUE(e.code() == ErrorCode::kUnavailable ||
              e.code() == ErrorCode::kDeadlineExceeded)
      << e.what();
}

// Two servers and two workers of this process.
struct Tasks {
  ClusterSpec spec{{"ps", {FreeAddress(), FreeAddress()}},
                   {"worker", {FreeAddress(), FreeAddress()}}};
  Server ps0{spec, "ps", 0}, ps1{spec, "ps", 1};
  Server worker0{spec, "worker", 0}, worker1{spec, "worker", 1};
};

// Elements (x, y) of a line, in batches of 4.
data::Dataset Line() {
  std::vector<float> xs, ys;
  for (int i = 0; i < 16; ++i) {
    xs.push_back(static_cast<float>(i) / 16);
    ys.push_back(2 * xs.back() - 1);
  }
  return data::Dataset::FromTensorSlices({Tensor::From<float>(xs, {16, 1}),
                                          Tensor::From<float>(ys, {16, 1})})
      .Repeat()
      .Batch(4);
}

// A network and its optimizer, made where they are to lie.
struct Line2 {
  Line2() { SetRandomSeed(3); }
  layers::Sequential model{layers::Dense(4, {.activation = "tanh"}),
                           layers::Dense(1)};
  Adam adam{0.05};

  Tensor Train(const data::Element& batch) {
    GradientTape tape;
    const Tensor loss =
        Mean(Square(model(batch[0]) - batch[1]), Tensor::From<int32_t>({0, 1}));
    const std::vector<Variable> all = model.trainable_variables();
    adam.Apply(tape.gradient(loss, all), all);
    return loss;
  }
};

TEST(ParameterServers, TrainsAsOneProcessDoes) {
  Line2 alone;
  auto step_alone = function([&](const Tensor& x, const Tensor& y) {
    return alone.Train({x, y});
  });
  data::Iterator batches(Line());
  data::Element batch;
  float loss_alone = 0;
  for (int i = 0; i < 20 && batches.Next(&batch); ++i) {
    loss_alone = step_alone(batch[0], batch[1]).item<float>();
  }

  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  EXPECT_EQ(strategy.num_servers(), 2);
  EXPECT_EQ(strategy.num_workers(), 2);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  Line2 made;
  auto step = function([&](const Tensor& x, const Tensor& y) {
    return made.Train({x, y});
  });
  data::Iterator again(Line());
  RemoteValue<Tensor> loss;
  for (int i = 0; i < 20 && again.Next(&batch); ++i) {
    loss = coordinator.Schedule(step, batch[0], batch[1]);
    coordinator.Join();  // one behind the other, as the process alone does
    EXPECT_TRUE(loss.IsSettled());
  }
  EXPECT_TRUE(coordinator.Done());
  EXPECT_EQ(loss.Fetch().item<float>(), loss_alone);
  const auto mine = made.model.variables(), other = alone.model.variables();
  ASSERT_EQ(mine.size(), 4u);
  for (size_t i = 0; i < mine.size(); ++i) {
    EXPECT_EQ(mine[i].value().vector<float>(), other[i].value().vector<float>())
        << i;
  }
}

TEST(ParameterServers, IteratorsOfWorkers) {
  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy), same(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const Variable sum(Tensor(0.0f)), seen(Tensor::From<int64_t>({0, 0}));
  // Worker w has the numbers w, w + 2, ... below 100, once.
  const PerWorkerDataset numbers = same.CreatePerWorkerDataset([](int worker) {
    return data::Dataset::Range(100).Shard(2, worker).Map([](const Tensor& n) {
      return data::Element{n, Cast(n, DType::kFloat32) * 2.0f};
    });
  });
  EXPECT_EQ(numbers.spec().dtypes.size(), 2u);
  const WorkerIterator iterator = numbers.Begin();
  auto step = function([&](const WorkerIterator& it, int) {
    const data::Element e = it.Next();
    sum.assign_add(e[1]);
    seen.assign_add(OneHot(FloorMod(e[0], Tensor(int64_t{2})), Tensor(2),
                           Tensor(int64_t{1}), Tensor(int64_t{0})));
    return e[0];
  });
  // Until both have come to their ends, each end is thrown once.
  int ends = 0;
  for (int turn = 0; turn < 200 && ends < 2; ++turn) {
    RemoteValue<Tensor> value;
    const Error e = ErrorOfCall([&] {
      value = coordinator.Schedule(step, iterator, 7);
      coordinator.Join();
    });
    if (value.IsSettled() && e.code() == ErrorCode::kUnknown) {
      EXPECT_LT(value.Fetch().item<int64_t>(), 100);
      continue;
    }
    EXPECT_EQ(e.code(), ErrorCode::kOutOfRange) << e.what();
    EXPECT_EQ(ErrorOfCall([&] { value.Fetch(); }).code(),
              ErrorCode::kOutOfRange);
    const std::vector<int64_t> counts = seen.value().vector<int64_t>();
    ends = (counts[0] == 50) + (counts[1] == 50);
  }
  EXPECT_TRUE(coordinator.Done());
  EXPECT_EQ(step.trace_count(), 1);
  const std::vector<int64_t> counts = seen.value().vector<int64_t>();
  if (ends == 2) {
    EXPECT_EQ(sum.value().item<float>(), 9900);
  } else {
    // One worker took all of these calls, which nothing forbids.
    EXPECT_TRUE(counts[0] == 50 || counts[1] == 50);
  }
  EXPECT_EQ(ErrorOfCall([&] { iterator.Next(); }).code(),
            ErrorCode::kFailedPrecondition);
}

TEST(ParameterServers, ShardedVariables) {
  const Tasks tasks;
  const ParameterServerStrategy strategy(
      tasks.spec, {.variable_partitioner = partitioners::FixedShards(2)});
  const ClusterCoordinator coordinator(strategy);
  std::vector<float> values;
  for (int i = 0; i < 10; ++i) values.push_back(static_cast<float>(i));
  const ShardedVariable table =
      strategy.MakeSharded(Tensor::From<float>(values, {5, 2}), "table");
  ASSERT_EQ(table.parts().size(), 2u);
  EXPECT_EQ(table.parts()[0].shape(), (TensorShape{3, 2}));
  EXPECT_EQ(table.parts()[1].name(), "table/part_1");
  EXPECT_EQ(table.shape(), (TensorShape{5, 2}));
  EXPECT_EQ(table.value().vector<float>(), values);
  EXPECT_EQ(
      table.Lookup(Tensor::From<int32_t>({4, 0, 3}, {3, 1})).vector<float>(),
      (std::vector<float>{8, 9, 0, 1, 6, 7}));
  auto step = function([&](const Tensor& rows) {
    GradientTape tape;
    const Tensor loss = Sum(table.Lookup(rows), Tensor::From<int32_t>({0, 1}));
    const Gradients found = tape.gradient(loss, table.parts());
    for (size_t i = 0; i < found.size(); ++i) {
      table.parts()[i].assign_sub(found[i].dense());
    }
    return loss;
  });
  const auto loss =
      coordinator.Schedule(step, Tensor::From<int64_t>({0, 4, 4}));
  coordinator.Join();
  EXPECT_EQ(loss.Fetch().item<float>(), 1 + 17 + 17);
  EXPECT_EQ(table.value().vector<float>(),
            (std::vector<float>{-1, 0, 2, 3, 4, 5, 6, 7, 6, 7}));
  table.assign(Tensor::From<float>(values, {5, 2}));
  table.assign_add(Tensor::From<float>(values, {5, 2}));
  table.assign_sub(Fill(Tensor::From<int32_t>({5, 2}), Tensor(1.0f)));
  EXPECT_EQ(table.parts()[1].value().vector<float>(),
            (std::vector<float>{11, 13, 15, 17}));
  const auto code = [](auto act) { return ErrorOfCall(act).code(); };
  EXPECT_EQ(code([&] { table.assign(Tensor(1.0f)); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { table.Lookup(Tensor(0.5f)); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { table.Lookup(Tensor(5)); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { table.Lookup(Tensor(-1)); }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code([&] { strategy.MakeSharded(Tensor(1.0f)); }),
            ErrorCode::kInvalidArgument);
}

TEST(ParameterServers, ErrorsAreThrownOnce) {
  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  const Variable here(Tensor(1.0f));
  std::optional<ParameterServerStrategy::Scope> scope(strategy);
  const Variable count(Tensor(0.0f)), first(Tensor::From<float>({1, 2, 3}));
  auto fails = function(
      [&](const Tensor& at) { return GatherV2(first.value(), at, Tensor(0)); });
  auto adds = function([&] { count.assign_add(Tensor(1.0f)); });
  const auto failed = coordinator.Schedule(fails, Tensor(7));
  Error e = ErrorOfCall([&] { coordinator.Join(); });
  EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
  EXPECT_EQ(ErrorOfCall([&] { failed.Fetch(); }).code(),
            ErrorCode::kInvalidArgument);
  for (int i = 0; i < 20; ++i) coordinator.Schedule(adds);
  coordinator.Join();
  EXPECT_EQ(count.value().item<float>(), 20);
  // What the coordinator's process has is not there for workers.
  auto local = function([&] { return here.value(); });
  e = ErrorOfCall([&] { coordinator.Schedule(local); });
  EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Says(e, "in the strategy's scope")) << e.what();
  auto handle = function([&] { return count; });
  EXPECT_EQ(ErrorOfCall([&] { coordinator.Schedule(handle); }).code(),
            ErrorCode::kUnimplemented);
  auto throws = function([&]() -> Tensor {
    throw Error(ErrorCode::kDataLoss, "as it is traced");
  });
  EXPECT_EQ(ErrorOfCall([&] { coordinator.Schedule(throws); }).code(),
            ErrorCode::kDataLoss);
  EXPECT_EQ(ErrorOfCall([] { RemoteValue<Tensor>().Fetch(); }).code(),
            ErrorCode::kInvalidArgument);
  // Without servers scopes of them change nothing any more.
  scope.reset();
  EXPECT_EQ(Variable(Tensor(2.0f)).value().item<float>(), 2);
}

// Those of which many wait go to a worker together: each has run once, in its
// place, and an error is of the one that failed.
TEST(ParameterServers, ManyGoTogether) {
  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const Variable sum(Tensor(0.0f)), table(Tensor::From<float>({1, 2, 3}));
  auto step = function([&](const Tensor& x, const Tensor& row) {
    sum.assign_add(x);
    return GatherV2(table.value(), row, Tensor(0)) * x;
  });
  auto quiet = function([&](const Tensor& x) { sum.assign_add(x); });
  for (int turn = 0; turn < 3; ++turn) {  // the first ones go one by one
    sum.assign(Tensor(0.0f));
    std::vector<RemoteValue<Tensor>> values;
    for (int i = 0; i < 300; ++i) {
      values.push_back(
          coordinator.Schedule(step, Tensor(static_cast<float>(i)), Tensor(1)));
      coordinator.Schedule(quiet, Tensor(1.0f));
    }
    coordinator.Join();
    EXPECT_EQ(sum.value().item<float>(), 300 * 299 / 2 + 300);
    for (int i = 0; i < 300; ++i) {
      EXPECT_EQ(values[i].Fetch().item<float>(), 2.0f * static_cast<float>(i));
    }
  }
  std::vector<RemoteValue<Tensor>> values;
  Error e = ErrorOfCall([&] {
    for (int i = 0; i < 300; ++i) {
      values.push_back(
          coordinator.Schedule(step, Tensor(1.0f), Tensor(i == 150 ? 7 : 1)));
    }
    coordinator.Join();
  });
  EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
  if (values.size() > 150) {
    EXPECT_EQ(ErrorOfCall([&] { values[150].Fetch(); }).code(),
              ErrorCode::kInvalidArgument);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    e = ErrorOfCall([&] { EXPECT_EQ(values[i].Fetch().item<float>(), 2); });
    if (i != 150) EXPECT_NE(e.code(), ErrorCode::kInvalidArgument) << i;
  }
  coordinator.Schedule(quiet, Tensor(1.0f));
  coordinator.Join();
}

// Those that wait behind one that goes on and on are run by the other worker,
// also the one that it waits for.
TEST(ParameterServers, NoneWaitsForALongOne) {
  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const Variable ready(Tensor(0.0f));
  // Until `ready` is at least that.
  auto waits = function([&](const Tensor& least) {
    return While([&](const Tensor&) { return Less(ready.value(), least); },
                 [](const Tensor& turns) { return turns + 1; }, Tensor(0));
  });
  auto opens = function([&](const Tensor& by) { ready.assign_add(by); });
  for (int i = 0; i < 300; ++i) {  // they are known to be short
    coordinator.Schedule(waits, Tensor(0.0f));
    coordinator.Schedule(opens, Tensor(0.0f));
  }
  coordinator.Join();
  for (float turn = 1; turn < 4; ++turn) {
    const auto slow = coordinator.Schedule(waits, Tensor(turn));
    std::vector<RemoteValue<Tensor>> others;
    for (int i = 0; i < 50; ++i) {
      others.push_back(coordinator.Schedule(waits, Tensor(0.0f)));
    }
    for (const auto& other : others) {
      EXPECT_EQ(other.Fetch().item<int32_t>(), 0);
    }
    EXPECT_FALSE(slow.IsSettled());
    coordinator.Schedule(opens, Tensor(1.0f));
    coordinator.Join();
    EXPECT_GT(slow.Fetch().item<int32_t>(), 0);
  }
}

// Each variable lies on another server, and the iterator on the worker.
TEST(ParameterServers, LoopsUseVariablesOfSeveralTasks) {
  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const Variable a(Tensor(0.0f)), b(Tensor(0.0f));
  const WorkerIterator ones =
      coordinator
          .CreatePerWorkerDataset(
              data::Dataset::FromTensors({Tensor(1.0f)}).Repeat())
          .Begin();
  auto loops = function([&](const WorkerIterator& it, const Tensor& n) {
    const Tensor before = a.value() * 10.0f;
    const Tensor turns = While(
        [&](const Tensor& i) {
          return LogicalAnd(Less(i, n), Less(a.value() + b.value(), 100.0f));
        },
        [&](const Tensor& i) {
          a.assign_add(it.Next()[0]);
          b.assign_add(a.value());
          // A loop within, and a branch of which each side has its own task.
          const Tensor more = While([](const Tensor& k) { return Less(k, 2); },
                                    [&](const Tensor& k) {
                                      a.assign_add(b.value() * 0.0f);
                                      return k + 1;
                                    },
                                    Tensor(0));
          return i +
                 Cond(
                     Equal(more, 2),
                     [&] { return Cast(b.value() * 0.0f, DType::kInt32); },
                     [&] { return Cast(a.value(), DType::kInt32); }) +
                 1;
        },
        Tensor(0));
    return before + Cast(turns, DType::kFloat32) + b.value();
  });
  // b is 1 + 2 + ... + n.
  const auto five = coordinator.Schedule(loops, ones, Tensor(5));
  coordinator.Join();
  EXPECT_EQ(five.Fetch().item<float>(), 0 + 5 + 15);
  const auto none = coordinator.Schedule(loops, ones, Tensor(0));
  coordinator.Join();
  EXPECT_EQ(none.Fetch().item<float>(), 50 + 0 + 15);
  const auto rest = coordinator.Schedule(loops, ones, Tensor(1000));
  coordinator.Join();
  // 13 + 91 are the first that are over 100.
  EXPECT_EQ(rest.Fetch().item<float>(), 50 + 8 + 91);
  EXPECT_EQ(a.value().item<float>(), 13);
  // An error of a turn is the function's.
  auto fails = function([&](const Tensor& n) {
    return While(
        [&](const Tensor& i) { return Less(i, n); },
        [&](const Tensor& i) {
          a.assign_add(b.value());
          return i + GatherV2(Tensor::From<int32_t>({1, 1}), i, Tensor(0));
        },
        Tensor(0));
  });
  coordinator.Schedule(fails, Tensor(9));
  EXPECT_EQ(ErrorOfCall([&] { coordinator.Join(); }).code(),
            ErrorCode::kInvalidArgument);
  coordinator.Join();
}

TEST(ParameterServers, CheckpointsTakeTheirVariables) {
  const std::string path = testing::TempDir() + "/of_servers";
  const Tasks tasks;
  const ParameterServerStrategy strategy(tasks.spec);
  Module there, here;
  {
    const ParameterServerStrategy::Scope scope(strategy);
    there.Track("v", Variable(Tensor::From<float>({1, 2})));
  }
  Checkpoint({{"m", there}}).write(path);
  const Variable v = here.Track("v", Variable(Tensor::From<float>({0, 0})));
  Checkpoint saved({{"m", here}});
  saved.restore(path);
  EXPECT_EQ(v.value().vector<float>(), (std::vector<float>{1, 2}));
  there.variables()[0].assign(Tensor::From<float>({5, 5}));
  Checkpoint again({{"m", there}});
  again.restore(path);
  EXPECT_EQ(there.variables()[0].value().vector<float>(),
            (std::vector<float>{1, 2}));
}

// A table of 5 rows, and its optimizer, made where they are to lie.
struct Rows {
  // In parts where a strategy divides variables.
  explicit Rows(OptimizerLayout layout,
                const ParameterServerStrategy* strategy = nullptr)
      : adam(0.1, 0.9, 0.999, 1e-7, /*amsgrad=*/false, {.layout = layout}) {
    const Tensor initial = Fill(Tensor::From<int32_t>({5, 2}), Tensor(1.0f));
    if (strategy != nullptr) {
      sharded = std::make_unique<ShardedVariable>(
          strategy->MakeSharded(initial, "table"));
    } else {
      whole = Variable(initial, "table");
    }
  }
  void Train() {
    const std::vector<Variable> all =
        sharded ? sharded->parts() : std::vector<Variable>{whole};
    GradientTape tape;
    const Tensor rows = Tensor::From<float>({0, 1, 2, 3, 4}, {5, 1});
    const Tensor loss =
        Sum(Square(value() * rows), Tensor::From<int32_t>({0, 1}));
    adam.Apply(tape.gradient(loss, all), all);
  }
  Tensor value() const { return sharded ? sharded->value() : whole.value(); }
  Checkpoint Files() {
    return Checkpoint({sharded ? Checkpoint::Part("table", *sharded)
                               : Checkpoint::Part("table", whole),
                       Checkpoint::Part("adam", adam)});
  }

  Variable whole;
  std::unique_ptr<ShardedVariable> sharded;
  Adam adam;
};

// A program of one process, and ones with any number of parts, go on where any
// of them was, with the optimizer's state.
TEST(ParameterServers, CheckpointsOfPartsAreOfTheWhole) {
  const Tasks tasks;
  for (const auto layout : {OptimizerLayout::kSlots, OptimizerLayout::kLists}) {
    const std::string path = testing::TempDir() + "/of_parts" +
                             std::to_string(static_cast<int>(layout));
    Rows alone(layout);
    for (int i = 0; i < 2; ++i) alone.Train();
    alone.Files().write(path);
    alone.Train();
    const std::vector<float> wanted = alone.value().vector<float>();
    for (const size_t parts : {2, 3, 1, 5}) {
      const ParameterServerStrategy strategy(
          tasks.spec, {.variable_partitioner = partitioners::FixedShards(
                           static_cast<int64_t>(parts))});
      const ParameterServerStrategy::Scope scope(strategy);
      Rows rows(layout, &strategy);
      ASSERT_EQ(rows.sharded->parts().size(), parts);
      Checkpoint files = rows.Files();
      files.restore(path);
      // Slots take their values when they are made,
      rows.Train();
      EXPECT_EQ(rows.value().vector<float>(), wanted) << parts;
      EXPECT_EQ(rows.adam.variables().size(),
                alone.adam.variables().size() + 2 * (parts - 1));
      // or when they are there.
      files.restore(path);
      files.write(path);
      rows.Train();
      EXPECT_EQ(rows.value().vector<float>(), wanted) << parts;
    }
    Rows again(layout);
    Checkpoint files = again.Files();
    files.restore(path);
    again.Train();
    EXPECT_EQ(again.value().vector<float>(), wanted);
  }
}

// ------------------------------------------------------------------ deaths

TEST(ClusterChild, DISABLED_Joins) {
  Server(TaskConfig::FromEnvironment()).Join();
}

// The processes of a cluster.
class Processes {
 public:
  OtherWorker Start(const std::string& job, int index) const {
    const auto quoted = [&](const char* name) {
      std::string all;
      for (const auto& [number, address] : spec.tasks(name)) {
        all += (all.empty() ? "\"" : ", \"") + address + "\"";
      }
      return all;
    };
    return OtherWorker("Joins",
                       "TF_CONFIG={\"cluster\": {\"ps\": [" + quoted("ps") +
                           "], \"worker\": [" + quoted("worker") +
                           "]}, \"task\": {\"type\": \"" + job +
                           "\", \"index\": " + std::to_string(index) + "}}");
  }
  const ClusterSpec spec{{"ps", {FreeAddress()}},
                         {"worker", {FreeAddress(), FreeAddress()}}};
};

// A function that takes some time, and counts its calls on the servers.
auto Slow(const Variable& count) {
  return function([count](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 12; ++i) y = Tanh(MatMul(y, x));
    count.assign_add(Tensor(1.0f));
    return Sum(y, Tensor::From<int32_t>({0, 1}));
  });
}

TEST(ParameterServers, WorkersMayDie) {
  const Processes processes;
  const OtherWorker ps = processes.Start("ps", 0);
  const ParameterServerStrategy strategy(processes.spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const Variable count(Tensor(0.0f));
  auto slow = Slow(count);
  const Tensor x = Fill(Tensor::From<int32_t>({200, 200}), Tensor(0.01f));
  // No worker need be there at first.
  std::vector<RemoteValue<Tensor>> values;
  for (int i = 0; i < 30; ++i) values.push_back(coordinator.Schedule(slow, x));
  EXPECT_FALSE(coordinator.Done());
  std::optional<OtherWorker> first(processes.Start("worker", 0));
  std::optional<OtherWorker> second(processes.Start("worker", 1));
  values[10].Fetch();
  first.reset();
  coordinator.Join();
  const float all = values[0].Fetch().item<float>();
  for (const auto& v : values) EXPECT_EQ(v.Fetch().item<float>(), all);
  EXPECT_GE(count.value().item<float>(), 30);
  EXPECT_LE(count.value().item<float>(), 31);
  // The one that comes back is used, with what it has not been told of.
  first.emplace(processes.Start("worker", 0));
  second.reset();
  for (int i = 0; i < 5; ++i) values[i] = coordinator.Schedule(slow, x);
  coordinator.Join();
  EXPECT_EQ(values[4].Fetch().item<float>(), all);
}

// Those that went to it together, and had not run, go to the other one.
TEST(ParameterServers, ShortCallsOutliveTheirWorker) {
  const Processes processes;
  const OtherWorker ps = processes.Start("ps", 0);
  std::optional<OtherWorker> first(processes.Start("worker", 0));
  const OtherWorker second = processes.Start("worker", 1);
  const ParameterServerStrategy strategy(processes.spec);
  const ClusterCoordinator coordinator(strategy);
  const ParameterServerStrategy::Scope scope(strategy);
  const Variable count(Tensor(0.0f));
  auto adds = function([&](const Tensor& x) {
    count.assign_add(Tensor(1.0f));
    return x * 2.0f;
  });
  constexpr int kCalls = 3000;
  std::vector<RemoteValue<Tensor>> values;
  for (int i = 0; i < kCalls; ++i) {
    values.push_back(coordinator.Schedule(adds, Tensor(static_cast<float>(i))));
  }
  values[500].Fetch();
  first.reset();
  coordinator.Join();
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(values[i].Fetch().item<float>(), 2.0f * static_cast<float>(i));
  }
  EXPECT_GE(count.value().item<float>(), kCalls);
  // At most what was with the worker has run twice.
  EXPECT_LT(count.value().item<float>(), kCalls + kCalls / 2);
}

TEST(ParameterServers, AServerThatDiesIsNamed) {
  for (const bool comes_back : {false, true}) {
    const Processes processes;
    std::optional<OtherWorker> ps(processes.Start("ps", 0));
    const OtherWorker worker = processes.Start("worker", 0);
    const ParameterServerStrategy strategy(processes.spec);
    const ClusterCoordinator coordinator(strategy);
    const ParameterServerStrategy::Scope scope(strategy);
    const Variable count(Tensor(0.0f));
    auto adds = function([&] { count.assign_add(Tensor(1.0f)); });
    coordinator.Schedule(adds);
    coordinator.Join();
    ps.reset();
    if (comes_back) ps.emplace(processes.Start("ps", 0));
    const auto lost = coordinator.Schedule(adds);
    const Error e = ErrorOfCall([&] { coordinator.Join(); });
    EXPECT_EQ(e.code(), ErrorCode::kUnavailable) << e.what();
    EXPECT_TRUE(Says(e, "/job:ps/replica:0/task:0")) << e.what();
    EXPECT_EQ(ErrorOfCall([&] { lost.Fetch(); }).code(),
              ErrorCode::kUnavailable);
  }
}

TEST(ParameterServers, ACoordinatorThatGoesCancels) {
  const Processes processes;
  const OtherWorker ps = processes.Start("ps", 0);
  const ParameterServerStrategy strategy(processes.spec);
  std::optional<ClusterCoordinator> coordinator(strategy);
  auto one = function([] { return Tensor(1.0f); });
  const auto value = coordinator->Schedule(one);  // there is no worker
  EXPECT_FALSE(value.IsSettled());
  coordinator.reset();
  EXPECT_EQ(ErrorOfCall([&] { value.Fetch(); }).code(), ErrorCode::kCancelled);
}

#endif  // HR_GRPC_TESTS

}  // namespace
}  // namespace headrace::tf::distribute
