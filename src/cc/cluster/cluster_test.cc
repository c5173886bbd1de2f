// Tasks over real sockets: two servers of this process, and two workers, one of
// which is a process of its own.
#include <cstdlib>
#include <thread>
#include <tuple>

#include "cc/cluster/test_tasks.h"
#include "graph/import.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace::tf::distribute {
namespace {

TEST(ClusterChild, DISABLED_NoTransport) {
  const Error e = ErrorOfCall([] {
    Server(ClusterSpec{{"worker", {FreeAddress()}}}, "worker", 0);
  });
  EXPECT_EQ(e.code(), ErrorCode::kFailedPrecondition) << e.what();
  EXPECT_TRUE(Says(e, "pip install headrace-serving")) << e.what();
  const Error s = ErrorOfCall([] { Session("grpc://127.0.0.1:1", ""); });
  EXPECT_EQ(s.code(), ErrorCode::kFailedPrecondition) << s.what();
}

TEST(Cluster, WithoutTheLibraryOfGrpc) {
  EXPECT_EQ(OtherWorker("NoTransport", "HEADRACE_GRPC_LIBRARY=/none").Wait(),
            0);
}

#ifdef HR_GRPC_TESTS

// A variable on the server, and what the worker does with it.
constexpr char kGraph[] = R"(
  node { name: "v" op: "VarHandleOp" device: "/job:ps/task:0"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape {} } }
         attr { key: "shared_name" value { s: "v" } } }
  node { name: "ten" op: "Const" device: "/job:worker/task:0"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {}
                                              float_val: 10 } } } }
  node { name: "x" op: "Placeholder" device: "/job:worker/task:0"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "shape" value { shape {} } } }
  node { name: "init" op: "AssignVariableOp" input: "v" input: "ten"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "train" op: "AssignAddVariableOp" input: "v" input: "x"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "read" op: "ReadVariableOp" input: "v"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "sum" op: "AddV2" input: "read" input: "x"
         device: "/job:worker/task:0" attr { key: "T" value { type: DT_FLOAT } }
       }
  versions { producer: 2000 })";

std::string GraphBytes() {
  const auto bytes = GraphDefFromText(kGraph);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

TEST(Cluster, SessionsTrainByAParameterServer) {
  const ClusterSpec spec{{"ps", {FreeAddress()}}, {"worker", {FreeAddress()}}};
  const Server ps(spec, "ps", 0), worker(spec, "worker", 0);
  EXPECT_EQ(worker.target(), "grpc://" + spec.address("worker", 0));
  const Session session(worker.target(), GraphBytes());
  EXPECT_TRUE(session.Run({}, {}, {"init"}).empty());
  session.Run({{"x", Tensor(2.0f)}}, {}, {"train"});
  EXPECT_EQ(
      session.Run({{"x:0", Tensor(0.5f)}}, {"sum", "read:0"})[0].item<float>(),
      12.5f);
  // Another session finds the same variable, also by a MetaGraphDef.
  tensorflow::MetaGraphDef meta;
  ASSERT_TRUE(meta.mutable_graph_def()->ParseFromString(GraphBytes()));
  const auto other =
      Session::OfMetaGraph(ps.target(), meta.SerializeAsString());
  EXPECT_EQ(other.Run({}, {"read"})[0].item<float>(), 12);
  EXPECT_EQ(session.Devices().size(), 2u);
  const Session filtered(worker.target(), GraphBytes(),
                         {.device_filters = {"/job:worker"}});
  EXPECT_EQ(
      filtered.Devices(),
      std::vector<std::string>{"/job:worker/replica:0/task:0/device:CPU:0"});

  const auto run = [&](const Session::Named& feeds, const char* fetch,
                       std::vector<std::string> targets = {}) {
    return ErrorOfCall(
        [&] { session.Run(feeds, std::vector<std::string>{fetch}, targets); });
  };
  EXPECT_TRUE(Says(run({{"x", Tensor(1)}}, "sum"), "float was expected"));
  EXPECT_EQ(run({{"x", Tensor(1)}}, "sum").code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Says(run({}, "none"), "none"));
  EXPECT_TRUE(Says(run({}, "read", {"nothing"}), "no operation nothing"));
  EXPECT_EQ(run({}, "sum").code(),
            ErrorCode::kInvalidArgument);  // x is not fed
  session.Close();
  session.Close();
  EXPECT_NE(run({}, "read").code(), ErrorCode::kUnknown);
  worker.Stop();
  worker.Stop();
  std::thread([&] { worker.Join(); }).join();
}

TEST(Cluster, WhatIsNoTaskAndNoTarget) {
  const std::string address = FreeAddress();
  const ClusterSpec spec{{"worker", {address}}};
  const auto server = [](const ClusterSpec& s, const char* job, int index) {
    return ErrorOfCall([&] { Server(s, job, index); });
  };
  const std::tuple<ClusterSpec, const char*, int, ErrorCode, const char*>
      cases[] = {
          {spec, "ps", 0, ErrorCode::kInternal, "Job \"ps\""},
          {spec, "worker", 3, ErrorCode::kInternal, "Task 3"},
          {spec, "", -1, ErrorCode::kInternal, "Job \"\""},
          {ClusterSpec{{"worker", {"nowhere"}}}, "worker", 0,
           ErrorCode::kInvalidArgument, "\"nowhere\""},
          {ClusterSpec{{"worker", {address}}, {"ps", {"bad"}}}, "worker", 0,
           ErrorCode::kInvalidArgument, "\"bad\""},
      };
  for (const auto& [cluster, job, index, code, part] : cases) {
    const Error e = server(cluster, job, index);
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_TRUE(Says(e, part)) << e.what();
  }
  {
    const Server first(spec, "worker", 0);
    const Error taken = server(spec, "worker", 0);
    EXPECT_EQ(taken.code(), ErrorCode::kUnknown) << taken.what();
    EXPECT_TRUE(Says(taken, address)) << taken.what();
  }
  EXPECT_EQ(ErrorOfCall([&] { Session("local", GraphBytes()); }).code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      ErrorOfCall([&] { Session("grpc://" + address, "no graph"); }).code(),
      ErrorCode::kInvalidArgument);
  // Nobody listens: it is waited for, as long as was said.
  const Session nobody("grpc://" + address, GraphBytes(),
                       {.operation_timeout = 0.2});
  const Error e = ErrorOfCall([&] { nobody.Run({}, {"read"}); });
  EXPECT_TRUE(e.code() == ErrorCode::kDeadlineExceeded ||
              e.code() == ErrorCode::kUnavailable)
      << e.what();
  EXPECT_EQ(ErrorOfCall([&] {
              Session("grpc://" + address, GraphBytes(),
                      {.operation_timeout = -1});
            }).code(),
            ErrorCode::kInvalidArgument);
}

void ExpectValues(const Tensor& found, const std::vector<float>& wanted) {
  EXPECT_EQ(found.vector<float>(), wanted);
}

// What each of two workers does.
void ActAsWorker() {
  const MultiWorkerMirroredStrategy strategy(
      CommunicationOptions{.timeout_seconds = 60});
  ASSERT_EQ(strategy.size(), 2);
  const float rank = static_cast<float>(strategy.rank());
  const auto act = [&](const Tensor& x) -> std::vector<Tensor> {
    auto sums = strategy.AllReduce(
        ReduceOp::kSum,
        std::vector<Tensor>{x, x * 2.0f, Cast(x, DType::kInt32)});
    sums.push_back(strategy.AllReduce(ReduceOp::kMean, x));
    sums.push_back(strategy.Broadcast(x));
    sums.push_back(strategy.AllReduce(ReduceOp::kSum, x > 0.5f));
    return sums;
  };
  const Tensor own = Tensor::From<float>({rank, 1 + rank});
  auto traced = function(act);
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<Tensor> found = turn == 0 ? act(own) : traced(own);
    ExpectValues(found[0], {1, 3});
    ExpectValues(found[1], {2, 6});
    EXPECT_EQ(found[2].vector<int32_t>(), (std::vector<int32_t>{1, 3}));
    ExpectValues(found[3], {0.5, 1.5});
    ExpectValues(found[4], {0, 1});
    EXPECT_EQ(found[5].dtype(), DType::kBool);
  }
  // One row of the first worker, two of the second.
  const std::vector<float> rows(static_cast<size_t>(2 + 2 * rank), rank);
  ExpectValues(strategy.AllGather(Tensor::From<float>(
                   rows, {1 + static_cast<int64_t>(rank), 2})),
               {0, 0, 1, 1, 1, 1});
  const Gradient slices(Tensor::From<float>({rank}, {1, 1}),
                        Tensor::From<int32_t>({static_cast<int32_t>(rank)}),
                        Tensor::From<int32_t>({2, 1}));
  const Gradients sums = strategy.AllReduce(
      ReduceOp::kSum, Gradients{slices, Gradient(), Gradient(Tensor(1.0f))});
  ExpectValues(sums[0].dense(), {0, 1});
  EXPECT_FALSE(sums[1]);
  EXPECT_EQ(sums[2].item<float>(), 2);
  EXPECT_EQ(ErrorOfCall([&] {
              strategy.AllReduce(ReduceOp::kSum, Tensor("x"));
            }).code(),
            ErrorCode::kUnimplemented);
  strategy.Barrier();

  // Each trains on rows of its own, from other first values.
  const MultiWorkerMirroredStrategy::Scope scope(strategy);
  const Variable told(Tensor(rank + 1));
  EXPECT_EQ(told.value().item<float>(), 1);
  SetRandomSeed(static_cast<int64_t>(rank));
  layers::Sequential model(layers::Dense(4, {.activation = "tanh"}),
                           layers::Dense(1));
  Adam adam(0.05);
  metrics::MeanAbsoluteError error;
  const Tensor x = Tensor::From<float>({rank, 1, 2 - rank, 3, 4, rank}, {3, 2});
  const Tensor y = Tensor::From<float>({1, 2, 3 + rank}, {3, 1});
  const auto batches = data::Dataset::FromTensors({x, y}).Repeat();
  const auto progress = train::Fit(
      model, adam, losses::MeanSquaredError(), batches,
      {.steps = 20, .metrics = {&error}, .report_every = 10, .verbose = false});
  EXPECT_EQ(progress.step, 20);
  // The first worker's last batch is smaller, and traced anew by it alone.
  const int64_t rows_of_own = 5 + strategy.rank();
  const auto uneven =
      data::Dataset::FromTensorSlices(
          {Fill(Tensor::From<int64_t>({rows_of_own, 2}), Tensor(1.0f)),
           Fill(Tensor::From<int64_t>({rows_of_own, 1}), Tensor(rank))})
          .Batch(3);
  EXPECT_EQ(train::Fit(model, adam, losses::MeanSquaredError(), uneven,
                       {.metrics = {&error}, .verbose = false})
                .step,
            22);
  // Losses and weights are the same on both.
  std::vector<Tensor> found = {Tensor(progress.loss),
                               Tensor(progress.metrics[0])};
  for (const Variable& v : model.variables()) found.push_back(v);
  for (const Tensor& t : found) {
    const std::vector<float> both =
        strategy.AllGather(Reshape(t, Tensor::From<int32_t>({1, -1})))
            .vector<float>();
    const auto middle = both.begin() + static_cast<int64_t>(both.size() / 2);
    EXPECT_EQ(std::vector<float>(both.begin(), middle),
              std::vector<float>(middle, both.end()));
  }
  EXPECT_LT(progress.loss, 20);
  strategy.Barrier();
}

TEST(ClusterChild, DISABLED_Works) { ActAsWorker(); }

TEST(Cluster, TwoWorkersSumAndTrain) {
  const std::string config = R"({"cluster": {"worker": [")" + FreeAddress() +
                             R"(", ")" + FreeAddress() +
                             R"("]}, "task": {"type": "worker", "index": )";
  OtherWorker other("Works", "TF_CONFIG=" + config + "1}}");
  setenv("TF_CONFIG", (config + "0}}").c_str(), 1);
  ActAsWorker();
  unsetenv("TF_CONFIG");
  EXPECT_EQ(other.Wait(), 0);
}

#endif  // HR_GRPC_TESTS

}  // namespace
}  // namespace headrace::tf::distribute
