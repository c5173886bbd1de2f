// Summaries: writers of event files as resources, and ops that write to them.
#include <mutex>

#include "base/files.h"
#include "formats/events.h"
#include "op/op.h"
#include "op/resource.h"
#include "tensorflow/core/util/event.pb.h"

namespace headrace {
namespace {

// An event file that is begun at the first event. Thread-safe.
class SummaryFile : public Resource {
 public:
  std::string DebugString() const override { return "SummaryFile"; }

  Status Open(std::string folder, std::string suffix) {
    std::lock_guard<std::mutex> lock(mutex_);
    folder_ = std::move(folder);
    suffix_ = std::move(suffix);
    opened_ = true;
    return OkStatus();
  }

  Status Write(const tensorflow::Event& event) {
    std::lock_guard<std::mutex> lock(mutex_);
    HR_RETURN_IF_ERROR(Begin());
    return writer_->Write(event);
  }

  Status Flush() {
    std::lock_guard<std::mutex> lock(mutex_);
    return writer_ ? writer_->Flush() : OkStatus();
  }

  Status Close() {
    std::lock_guard<std::mutex> lock(mutex_);
    opened_ = false;
    if (!writer_) return OkStatus();
    Status s = writer_->Close();
    writer_ = nullptr;
    return s;
  }

 private:
  Status Begin() {
    if (writer_) return OkStatus();
    if (!opened_) {
      return FailedPrecondition("this summary writer has no open file");
    }
    std::string local;
    HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(folder_, &local));
    HR_RETURN_IF_ERROR(CreateDirectories(fs, local));
    HR_ASSIGN_OR_RETURN(
        writer_,
        EventWriter::Create(fs, absl::StrCat(local, "/events"), suffix_));
    return OkStatus();
  }

  std::mutex mutex_;
  std::string folder_, suffix_;
  bool opened_ = false;
  std::unique_ptr<EventWriter> writer_;
};

class MakeWriter : public Kernel {
 public:
  explicit MakeWriter(const ResolvedOp& op)
      : name_(op.string_attr("shared_name")),
        container_(op.string_attr("container")) {}
  bool own_outputs() const override { return true; }
  Status Run(KernelContext& c) override {
    ResourceHandle handle;
    handle.name = name_;
    handle.container = container_.empty() ? "localhost" : container_;
    if (name_.empty()) {
      handle.resource = std::make_shared<SummaryFile>();
    } else {
      auto make = []() -> StatusOr<std::shared_ptr<Resource>> {
        return std::shared_ptr<Resource>(std::make_shared<SummaryFile>());
      };
      HR_ASSIGN_OR_RETURN(handle.resource,
                          c.services().resources->LookUpOrCreate(
                              handle.container, handle.name, make));
    }
    c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
    return OkStatus();
  }

 private:
  const std::string name_, container_;
};

HR_OP(SummaryWriter)
    .Output("writer: resource")
    .Attr("shared_name: string = ''")
    .Attr("container: string = ''")
    .Doc("Makes a handle of a summary writer.")
    .Stateful()
    .Shape(ScalarShape)
    .NoGradient()
    .Cpu(Bind<MakeWriter>);

StatusOr<std::shared_ptr<SummaryFile>> WriterOf(const KernelContext& c) {
  return ResourceAs<SummaryFile>(c.input(0), c.services().resources);
}

// Input i, a scalar of T.
template <typename T>
StatusOr<T> ScalarInput(const KernelContext& c, int i) {
  if (c.input(i).num_elements() != 1) {
    return InvalidArgument(c.op().def().inputs[i].name,
                           " must be a scalar, but has shape ",
                           c.input(i).shape());
  }
  return *c.in<T>(i);
}

Status Create(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto writer, WriterOf(c));
  HR_ASSIGN_OR_RETURN(std::string folder, ScalarInput<std::string>(c, 1));
  HR_ASSIGN_OR_RETURN(std::string suffix, ScalarInput<std::string>(c, 4));
  return writer->Open(std::move(folder), std::move(suffix));
}

HR_OP(CreateSummaryFileWriter)
    .Input("writer: resource")
    .Input("logdir: string")
    .Input("max_queue: int32")
    .Input("flush_millis: int32")
    .Input("filename_suffix: string")
    .Doc("Lets a summary writer write to a new event file in a folder.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<Create>);

Status Flush(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto writer, WriterOf(c));
  return writer->Flush();
}

HR_OP(FlushSummaryWriter)
    .Input("writer: resource")
    .Doc("Hands all events written so far to the file system.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<Flush>);

Status Close(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto writer, WriterOf(c));
  return writer->Close();
}

HR_OP(CloseSummaryWriter)
    .Input("writer: resource")
    .Doc("Closes a summary writer's file.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<Close>);

tensorflow::Event EventAt(int64_t step) {
  tensorflow::Event event;
  event.set_wall_time(EventClock());
  event.set_step(step);
  return event;
}

Status FillProto(const Tensor& t, tensorflow::TensorProto* proto) {
  proto->set_dtype(
      static_cast<tensorflow::DataType>(static_cast<int>(t.dtype())));
  for (int64_t d : t.shape().dims()) {
    proto->mutable_tensor_shape()->add_dim()->set_size(d);
  }
  proto->mutable_tensor_shape();
  if (t.dtype() == DType::kString) {
    for (const std::string& s : t.span<std::string>()) {
      proto->add_string_val(s);
    }
  } else if (IsPlain(t.dtype())) {
    proto->set_tensor_content(t.raw(), t.bytes());
  } else {
    return InvalidArgument("a summary cannot hold values of type ",
                           DTypeName(t.dtype()));
  }
  return OkStatus();
}

Status WriteTensor(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto writer, WriterOf(c));
  HR_ASSIGN_OR_RETURN(int64_t step, ScalarInput<int64_t>(c, 1));
  HR_ASSIGN_OR_RETURN(std::string tag, ScalarInput<std::string>(c, 3));
  HR_ASSIGN_OR_RETURN(std::string metadata, ScalarInput<std::string>(c, 4));
  tensorflow::Event event = EventAt(step);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  if (!metadata.empty() &&
      !value->mutable_metadata()->ParseFromString(metadata)) {
    return InvalidArgument("summary_metadata is no SummaryMetadata proto");
  }
  HR_RETURN_IF_ERROR(FillProto(c.input(2), value->mutable_tensor()));
  return writer->Write(event);
}

HR_OP(WriteSummary)
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tensor: T")
    .Input("tag: string")
    .Input("summary_metadata: string")
    .Attr("T: type")
    .Doc("Writes a tensor as an event.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<WriteTensor>);

Status WriteProtos(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto writer, WriterOf(c));
  HR_ASSIGN_OR_RETURN(int64_t step, ScalarInput<int64_t>(c, 1));
  tensorflow::Event event = EventAt(step);
  for (const std::string& bytes : c.input(2).span<std::string>()) {
    tensorflow::Summary summary;
    if (!summary.ParseFromString(bytes)) {
      return DataLoss("Bad tf.compat.v1.Summary binary proto tensor string");
    }
    event.mutable_summary()->MergeFrom(summary);
  }
  return writer->Write(event);
}

HR_OP(WriteRawProtoSummary)
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tensor: string")
    .Doc("Writes serialised Summary protos as one event.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<WriteProtos>);

Status WriteGraph(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto writer, WriterOf(c));
  HR_ASSIGN_OR_RETURN(int64_t step, ScalarInput<int64_t>(c, 1));
  HR_ASSIGN_OR_RETURN(std::string graph, ScalarInput<std::string>(c, 2));
  tensorflow::Event event = EventAt(step);
  event.set_graph_def(graph);
  return writer->Write(event);
}

HR_OP(WriteGraphSummary)
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tensor: string")
    .Doc("Writes a serialised GraphDef as an event.")
    .Stateful()
    .Shape(NoOutputs)
    .NoGradient()
    .Cpu(Compute<WriteGraph>);

}  // namespace
}  // namespace headrace
