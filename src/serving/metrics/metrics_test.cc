#include "serving/metrics/metrics.h"

#include <thread>

#include "base/files/files.h"
#include "gtest/gtest.h"
#include "serving/metrics/monitoring_config.h"
#include "serving/metrics/prometheus.h"

namespace headrace::serving::metrics {
namespace {

std::string TextOf(AnyFamily& family) {
  AnyFamily* const one[] = {&family};
  return PrometheusText(one);
}

TEST(Prometheus, Counters) {
  Family<Counter> f("/a-b/c_d.1", {"x", "y"});
  EXPECT_EQ(TextOf(f), "");
  f.At({"1", "b"})->Increment();
  f.At({"1", "a"})->Increment(3);
  f.At({"1", "b"})->Increment();
  EXPECT_EQ(TextOf(f),
            "# TYPE :a:b:c_d:1 counter\n"
            ":a:b:c_d:1{x=\"1\",y=\"a\"} 3\n"
            ":a:b:c_d:1{x=\"1\",y=\"b\"} 2\n");
}

TEST(Prometheus, WithoutLabels) {
  Family<Counter> f("/n", {});
  f.At({})->Increment(3);
  EXPECT_EQ(TextOf(f), "# TYPE :n counter\n:n{} 3\n");
}

TEST(Prometheus, Gauges) {
  Family<Gauge> f("/g", {"m"});
  f.At({"x"})->Set(1.5);
  f.At({"x"})->Add(1);
  EXPECT_EQ(TextOf(f), "# TYPE :g gauge\n:g{m=\"x\"} 2.5\n");
}

TEST(Prometheus, LabelsAreEscaped) {
  Family<Counter> f("/e", {"m"});
  f.At({"a\"b\\c\nd"})->Increment();
  EXPECT_EQ(TextOf(f), "# TYPE :e counter\n:e{m=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(Prometheus, Histograms) {
  Family<Histogram> f("/h", {"m"}, {10, 18, 32.4, 1234567.8});
  const HistogramPtr h = f.At({"x"});
  for (const double v : {1.0, 10.0, 10.5, 40.0, 1e9}) h->Record(v);
  EXPECT_EQ(TextOf(f),
            "# TYPE :h histogram\n"
            ":h_bucket{m=\"x\",le=\"10\"} 2\n"
            ":h_bucket{m=\"x\",le=\"18\"} 3\n"
            ":h_bucket{m=\"x\",le=\"32.4\"} 3\n"
            ":h_bucket{m=\"x\",le=\"1.23457e+06\"} 4\n"
            ":h_bucket{m=\"x\",le=\"+Inf\"} 5\n"
            ":h_sum{m=\"x\"} 1000000061.5\n"
            ":h_count{m=\"x\"} 5\n");
  Family<Histogram> bare("/b", {}, {1});
  bare.At({})->Record(1);
  EXPECT_EQ(TextOf(bare),
            "# TYPE :b histogram\n:b_bucket{le=\"1\"} 1\n"
            ":b_bucket{le=\"+Inf\"} 1\n:b_sum{} 1\n:b_count{} 1\n");
}

// The names, labels and limits that dashboards ask for.
TEST(Metrics, Table) {
  RequestCount("m", "OK")->Increment();
  RequestLatency("m", "Predict", "GRPC")->Record(1);
  RuntimeLatency("m", "Predict")->Record(1);
  RequestExampleCounts("m")->Record(1);
  RequestExampleCountTotal("m")->Increment();
  RequestLogCount("m", "OK")->Increment();
  ModelWarmupLatency("/p", "OK")->Record(1);
  ModelWarmupRecordsRead("/p", "OK")->Increment();
  BatchQueuingLatency("pool")->Record(1);
  BatchWrappedRunCount()->Increment();
  BatchPaddingSize(8)->Record(1);
  BatchInputSize()->Record(1);
  BatchProcessedSize()->Record(1);
  MlmdMap("m", 1, "u")->Set(1);
  GraphRuns()->Increment();
  LoadLatency("/p")->Increment();
  LoadAttemptCount("/p", "success")->Increment();
  DetailedRequestLatency({"m", 1, "s", "Predict", "GRPC", "OK"})->Record(1);
  InFlight("m")->Add(1);
  QueueDepth("m", 1, "s")->Set(1);
  BatchSize("m", 1, "s")->Record(1);
  ModelMemoryBytes("m", 1)->Set(1);
  ModelLoadSeconds("m", 1)->Set(1);
  const std::string text = "\n" + PrometheusText();
  const char* const lines[] = {
      "# TYPE :tensorflow:serving:request_count counter",
      ":tensorflow:serving:request_count{model_name=\"m\",status=\"OK\"} ",
      "# TYPE :tensorflow:serving:request_latency histogram",
      ":tensorflow:serving:request_latency_bucket{model_name=\"m\",API="
      "\"Predict\",entrypoint=\"GRPC\",le=\"10\"} ",
      ":tensorflow:serving:request_latency_bucket{model_name=\"m\",API="
      "\"Predict\",entrypoint=\"GRPC\",le=\"32.4\"} ",
      ":tensorflow:serving:request_latency_bucket{model_name=\"m\",API="
      "\"Predict\",entrypoint=\"GRPC\",le=\"1.47476e+09\"} ",
      ":tensorflow:serving:runtime_latency_count{model_name=\"m\",API="
      "\"Predict\",runtime=\"TF1\"} ",
      ":tensorflow:serving:request_example_counts_bucket{model=\"m\",le="
      "\"16384\"} ",
      ":tensorflow:serving:request_example_count_total{model=\"m\"} ",
      ":tensorflow:serving:request_log_count{model_name=\"m\",status_code="
      "\"OK\"} ",
      ":tensorflow:serving:model_warmup_latency_sum{model_path=\"/p\",status="
      "\"OK\"} ",
      ":tensorflow:serving:model_warmup_records_read{model_path=\"/p\",status="
      "\"OK\"} ",
      ":tensorflow:serving:batching_session:queuing_latency_bucket{thread_pool_"
      "name=\"pool\",le=\"100\"} ",
      ":tensorflow:serving:batching_session:queuing_latency_bucket{thread_pool_"
      "name=\"pool\",le=\"144\"} ",
      ":tensorflow:serving:batching_session:wrapped_run_count{} ",
      ":tensorflow:serving:batching_session:padding_size_bucket{execution_"
      "batch_size=\"8\",le=\"8192\"} ",
      ":tensorflow:serving:batching_session:input_batch_size_bucket{le=\"1\"} ",
      ":tensorflow:serving:batching_session:processed_batch_size_count{} ",
      ":tensorflow:serving:mlmd_map{model_name=\"m\",version=\"1\",mlmd_uuid="
      "\"u\"} 1",
      ":tensorflow:core:graph_runs{} ",
      ":tensorflow:cc:saved_model:load_latency{model_path=\"/p\"} ",
      ":tensorflow:cc:saved_model:load_attempt_count{model_path=\"/p\",status="
      "\"success\"} ",
      ":headrace:serving:request_latency_count{model_name=\"m\",version=\"1\","
      "signature=\"s\",method=\"Predict\",entrypoint=\"GRPC\",status=\"OK\"} ",
      ":headrace:serving:in_flight{model_name=\"m\"} ",
      ":headrace:serving:queue_depth{model_name=\"m\",version=\"1\",signature="
      "\"s\"} ",
      ":headrace:serving:batch_size_count{model_name=\"m\",version=\"1\","
      "signature=\"s\"} ",
      ":headrace:serving:model_memory_bytes{model_name=\"m\",version=\"1\"} 1",
      ":headrace:serving:model_load_seconds{model_name=\"m\",version=\"1\"} 1",
      ":headrace:serving:process_resident_bytes{} ",
  };
  for (const char* line : lines) {
    EXPECT_NE(text.find(std::string("\n") + line), std::string::npos) << line;
  }
  EXPECT_EQ(text.find("# HELP"), std::string::npos);
  EXPECT_GT(ProcessResidentBytes()->value(), 1e6);
}

TEST(Metrics, BucketsOfHistograms) {
  EXPECT_EQ(RequestLatency("b", "", "REST")->limits().size(), 33u);
  EXPECT_EQ(RequestExampleCounts("b")->limits().size(), 15u);
  EXPECT_EQ(BatchQueuingLatency("b")->limits().size(), 52u);
  EXPECT_EQ(BatchInputSize()->limits().size(), 14u);
}

TEST(Metrics, CodeNames) {
  EXPECT_EQ(CodeName(OkStatus()), "OK");
  EXPECT_EQ(CodeName(InvalidArgument("")), "INVALID_ARGUMENT");
  EXPECT_EQ(CodeName(DataLoss("")), "DATA_LOSS");
  EXPECT_EQ(CodeName(absl::UnauthenticatedError("")), "UNAUTHENTICATED");
}

TEST(Metrics, VersionsAreForgotten) {
  QueueDepth("forgotten", 7, "s")->Set(1);
  QueueDepth("forgotten", 8, "s")->Set(1);
  RequestCount("forgotten", "OK")->Increment();
  DetailedRequestLatency({"forgotten", 7, "s"})->Record(1);
  ForgetVersion("forgotten", 7);
  const std::string text = PrometheusText();
  EXPECT_EQ(text.find("model_name=\"forgotten\",version=\"7\""),
            std::string::npos);
  EXPECT_NE(text.find("model_name=\"forgotten\",version=\"8\""),
            std::string::npos);
  EXPECT_NE(text.find("request_count{model_name=\"forgotten\""),
            std::string::npos);
}

TEST(Metrics, FirstCells) {
  GraphRuns()->Increment();
  EXPECT_EQ(FirstCell("/tensorflow/core/graph_runs"), GraphRuns()->value());
  EXPECT_EQ(FirstCell("/tensorflow/core/none"), std::nullopt);
}

TEST(Metrics, NamesOfClientsDoNotFillTheMemory) {
  Family<Counter> f("/f", {"model", "status"});
  for (size_t i = 0; i < kMostCells + 10; ++i) {
    f.At({absl::StrCat(i), "OK"})->Increment();
  }
  EXPECT_EQ(f.At({"yet another", "OK"})->value(), 10);
  EXPECT_EQ(f.At({"0", "OK"})->value(), 1);
  EXPECT_NE(TextOf(f).find("{model=\"(other)\",status=\"(other)\"} 10"),
            std::string::npos);
}

TEST(Metrics, ThreadsCountTogether) {
  Family<Histogram> f("/t", {"m"}, {10});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) f.At({"x"})->Record(1);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(f.At({"x"})->count(), 4000);
  EXPECT_EQ(f.At({"x"})->sum(), 4000);
}

TEST(MonitoringConfig, Paths) {
  std::string file;
  FileSystem* fs = *FileSystemFor("ram://monitoring.txt", &file);
  const struct {
    const char *text, *path, *error;
  } rows[] = {
      {"prometheus_config { enable: true path: \"/m\" }", "/m", ""},
      {"prometheus_config { enable: true }", "/monitoring/prometheus/metrics",
       ""},
      {"", "/monitoring/prometheus/metrics", ""},
      {"prometheus_config { path: \"m\" }", "",
       "prometheus_config.path must begin with a slash: m"},
      {"prometheus { }", "", "Invalid protobuf file: 'ram://monitoring.txt'"},
      {"prometheus_config {", "", "Invalid protobuf file"},
  };
  for (const auto& row : rows) {
    ASSERT_TRUE(WriteFileAtomically(fs, file, row.text).ok());
    const auto config = ReadMonitoringConfig("ram://monitoring.txt");
    if (*row.error != 0) {
      EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << row.text;
      EXPECT_NE(config.status().message().find(row.error), std::string::npos);
    } else {
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_EQ(config->prometheus_config().path(), row.path);
    }
  }
  EXPECT_TRUE(absl::IsNotFound(ReadMonitoringConfig("/nowhere").status()));
}

}  // namespace
}  // namespace headrace::serving::metrics
