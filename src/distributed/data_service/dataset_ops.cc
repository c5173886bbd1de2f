// RegisterDatasetV2, DataServiceDatasetV4: datasets of the data service.
#include <atomic>

#include "absl/strings/ascii.h"
#include "data/dataset_op.h"
#include "distributed/data_service/ask.h"
#include "distributed/data_service/client.h"
#include "distributed/data_service/methods.h"
#include "distributed/data_service/process.h"
#include "function/dataset_writer.h"
#include "runtime/function_caller.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/data_service.pb.h"

namespace headrace::distributed::data_service {
namespace {

// Upstream's number, in external_state_policy, for refusing functions with
// state.
constexpr int64_t kFailOnState = 2;

template <typename Message>
StatusOr<Message> ParsedText(const std::string& text, StringView what) {
  Message message;
  if (!message.ParseFromString(text)) {
    return InvalidArgument(what, " cannot be read");
  }
  return message;
}

Status RegisterAtDispatcher(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const std::string address, TextInput(c, 1, "address"));
  HR_ASSIGN_OR_RETURN(const std::string protocol, TextInput(c, 2, "protocol"));
  HR_ASSIGN_OR_RETURN(const auto metadata,
                      ParsedText<tensorflow::data::DataServiceMetadata>(
                          c.op().string_attr("metadata"), "metadata"));
  tensorflow::GraphDef graph;
  HR_RETURN_IF_ERROR(WriteDatasetGraph(
      *dataset, CallerOf(c.services()).library(),
      {.allow_state = c.op().int_attr("external_state_policy") != kFailOnState},
      &graph));
  RegisterDatasetRequest request;
  ServiceDataset& out = *request.mutable_dataset();
  out.set_id(c.op().string_attr("requested_dataset_id"));
  out.set_graph(SortedBytes(graph));
  out.set_element_spec(metadata.element_spec());
  out.set_compression(metadata.compression());
  out.set_cardinality(dataset->Cardinality());
  HR_ASSIGN_OR_RETURN(const auto channels, ChannelsOfProcess(protocol));
  CallOptions options;
  options.wait_for_ready = true;
  RegisterDatasetResponse response;
  HR_RETURN_IF_ERROR(
      Ask(*channels, address, kRegisterDataset, request, &response, options));
  c.set_output(0, Tensor::Scalar<std::string>(response.id()));
  return OkStatus();
}

HR_OP(RegisterDatasetV2)
    .Input("dataset: variant")
    .Input("address: string")
    .Input("protocol: string")
    .Output("dataset_id: string")
    .Attr("external_state_policy: int")
    .Attr("element_spec: string = ''")
    .Attr("requested_dataset_id: string = ''")
    .Attr("metadata: string = ''")
    .Doc("Hands a dataset to a dispatcher of the data service; its id there.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<RegisterAtDispatcher>);

// What the elements come from: a walk is an iteration of its own, or that of a
// named job.
class DataServiceDataset : public Dataset {
 public:
  struct Source {
    std::string protocol;
    ReaderOptions reader;
    std::string transfer_protocol;
    int64_t cardinality = kUnknownCardinality;
  };

  DataServiceDataset(ElementSpec spec, Source source)
      : Dataset(std::move(spec)), source_(std::move(source)) {}
  StringView kind() const override { return "DataServiceV4"; }
  int64_t Count() const override { return source_.cardinality; }

  class Iterator : public IteratorOf<DataServiceDataset> {
   public:
    using IteratorOf::IteratorOf;
    ~Iterator() override {
      if (reader_) reader_->Close();
    }
    Status Start(PullContext&) override {
      const Source& source = dataset().source_;
      HR_ASSIGN_OR_RETURN(auto channels, ChannelsOfProcess(source.protocol));
      ReaderOptions options = source.reader;
      options.iteration.set_repetition(dataset().walks_.fetch_add(1));
      HR_ASSIGN_OR_RETURN(
          reader_,
          data_service::Reader::Open(std::move(options), std::move(channels)));
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      const StopScope scope(c.token);
      const std::string& transfer = dataset().source_.transfer_protocol;
      if (!transfer.empty() && transfer != "grpc") {
        return NotFound("Protocol '", transfer,
                        "' is not available for the workers of ",
                        dataset().source_.reader.dispatcher, ".");
      }
      HR_RETURN_IF_ERROR(reader_->Next(out, end));
      return *end ? OkStatus() : CheckElement(*out);
    }
    Status Save(PullContext&, StateWriter&) override { return NoPlace(); }
    Status Restore(PullContext&, const StateReader&) override {
      return NoPlace();
    }

   private:
    static Status NoPlace() {
      return Unimplemented("Save is not yet supported for iterators over the ",
                           "data service");
    }
    Status CheckElement(const Element& element) const {
      const ElementSpec& spec = dataset().spec();
      if (element.size() != spec.types.size()) {
        return FailedPrecondition("Expected ", spec.types.size(),
                                  " components but got ", element.size());
      }
      for (size_t i = 0; i < element.size(); ++i) {
        if (element[i].dtype() != spec.types[i]) {
          return FailedPrecondition(
              "Expected a tensor of type ", DTypeName(spec.types[i]),
              " but got a tensor of type ", DTypeName(element[i].dtype()));
        }
        if (!spec.shapes[i].CompatibleWith(element[i].shape())) {
          return FailedPrecondition("Expected a tensor of shape ",
                                    spec.shapes[i], " but got one of shape ",
                                    element[i].shape());
        }
      }
      return OkStatus();
    }

    std::shared_ptr<data_service::Reader> reader_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Source source_;
  mutable std::atomic<int64_t> walks_{0};
};

Status SetConsumers(KernelContext& c, ReaderOptions* reader) {
  HR_ASSIGN_OR_RETURN(reader->consumer, IntInput(c, 5, "consumer_index"));
  HR_ASSIGN_OR_RETURN(const int64_t count, IntInput(c, 6, "num_consumers"));
  if (count < 0) return OkStatus();
  if (reader->consumer < 0 || reader->consumer >= count) {
    return FailedPrecondition(
        "Requesting data for consumer index ", reader->consumer,
        ", but the task is configured for only ", count, " consumers");
  }
  reader->iteration.set_num_consumers(count);
  return OkStatus();
}

Status SetTargets(const std::string& targets, ReaderOptions* reader) {
  const std::string upper = absl::AsciiStrToUpper(targets);
  if (upper != "AUTO" && upper != "ANY" && upper != "LOCAL" && !upper.empty()) {
    return InvalidArgument("Unrecognized target workers: ", targets);
  }
  reader->local_only = upper == "LOCAL";
  return OkStatus();
}

Status MakeDataService(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  DataServiceDataset::Source source;
  ReaderOptions& reader = source.reader;
  ServiceIteration& iteration = reader.iteration;
  HR_ASSIGN_OR_RETURN(*iteration.mutable_dataset_id(),
                      TextInput(c, 0, "dataset_id"));
  HR_ASSIGN_OR_RETURN(const std::string mode,
                      TextInput(c, 1, "processing_mode"));
  HR_ASSIGN_OR_RETURN(
      const auto mode_def,
      ParsedText<tensorflow::data::ProcessingModeDef>(mode, "processing_mode"));
  iteration.set_policy(mode_def.sharding_policy());
  HR_ASSIGN_OR_RETURN(reader.dispatcher, TextInput(c, 2, "address"));
  HR_ASSIGN_OR_RETURN(source.protocol, TextInput(c, 3, "protocol"));
  HR_ASSIGN_OR_RETURN(*iteration.mutable_job_name(),
                      TextInput(c, 4, "job_name"));
  HR_RETURN_IF_ERROR(SetConsumers(c, &reader));
  HR_ASSIGN_OR_RETURN(reader.most_outstanding,
                      IntInput(c, 7, "max_outstanding_requests"));
  if (reader.most_outstanding == 0 || reader.most_outstanding < -1) {
    return InvalidArgument("max_outstanding_requests must be positive or -1");
  }
  HR_RETURN_IF_ERROR(SetTargets(c.op().string_attr("target_workers"), &reader));
  source.transfer_protocol = c.op().string_attr("data_transfer_protocol");
  HR_ASSIGN_OR_RETURN(const auto cache,
                      ParsedText<tensorflow::data::CrossTrainerCacheOptions>(
                          c.op().string_attr("cross_trainer_cache_options"),
                          "cross_trainer_cache_options"));
  reader.trainer = cache.trainer_id();
  iteration.set_cross_trainer(!reader.trainer.empty());
  HR_ASSIGN_OR_RETURN(const ServiceDataset known,
                      DescribeDataset(source.protocol, reader.dispatcher,
                                      iteration.dataset_id()));
  if (known.cardinality() == kInfiniteCardinality) {
    source.cardinality = kInfiniteCardinality;
  }
  return SetDataset<DataServiceDataset>(c, std::move(spec), std::move(source));
}

HR_OP(DataServiceDatasetV4)
    .Input("dataset_id: string")
    .Input("processing_mode: string")
    .Input("address: string")
    .Input("protocol: string")
    .Input("job_name: string")
    .Input("consumer_index: int64")
    .Input("num_consumers: int64")
    .Input("max_outstanding_requests: int64")
    .Input("iteration_counter: resource")
    .Output("handle: variant")
    .Attr("task_refresh_interval_hint_ms: int = -1")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("data_transfer_protocol: string = ''")
    .Attr("target_workers: string = 'AUTO'")
    .Attr("uncompress: bool = false")
    .Attr("uncompress_fn: func")
    .Attr("cross_trainer_cache_options: string = ''")
    .Doc("The elements of a dataset, as workers of the data service make them.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeDataService>);

}  // namespace
}  // namespace headrace::distributed::data_service
