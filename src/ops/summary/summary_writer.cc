// Event files for TensorBoard: SummaryWriter, CreateSummaryFileWriter,
// WriteScalarSummary, WriteSummary, WriteRawProtoSummary, WriteGraphSummary,
// ImportEvent, FlushSummaryWriter, CloseSummaryWriter.
#include <chrono>

#include "base/files/files.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "formats/events.h"
#include "op/op.h"
#include "op/reach.h"
#include "op/resource.h"
#include "ops/summary/summary_values.h"
#include "tensor/variant.h"
#include "tensorflow/core/util/event.pb.h"

namespace headrace {
namespace {

// Events wait here until the queue is long or old enough.
class SummaryFile : public Resource {
 public:
  SummaryFile(std::unique_ptr<EventWriter> writer, int max_queue,
              int flush_millis)
      : writer_(std::move(writer)),
        max_queue_(max_queue),
        flush_millis_(flush_millis) {}
  ~SummaryFile() override {
    Guarded("a summary writer's end", [this] {
      MutexLock lock(mutex_);
      return writer_->Close();
    }).IgnoreError();
  }
  std::string DebugString() const override {
    MutexLock lock(mutex_);
    return absl::StrCat("SummaryWriter ", writer_->path());
  }

  Status Write(const tensorflow::Event& event) {
    MutexLock lock(mutex_);
    HR_RETURN_IF_ERROR(writer_->Write(event));
    ++waiting_;
    const auto age = Clock::now() - last_flush_;
    if (waiting_ > max_queue_ ||
        age > std::chrono::milliseconds(flush_millis_)) {
      return FlushLocked();
    }
    return OkStatus();
  }

  Status Flush() {
    MutexLock lock(mutex_);
    return FlushLocked();
  }

 private:
  using Clock = std::chrono::steady_clock;

  Status FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiting_ = 0;
    last_flush_ = Clock::now();
    return writer_->Flush();
  }

  mutable Mutex mutex_;
  const std::unique_ptr<EventWriter> writer_ ABSL_PT_GUARDED_BY(mutex_);
  const int max_queue_;
  const int flush_millis_;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  Clock::time_point last_flush_ ABSL_GUARDED_BY(mutex_) = Clock::now();
};

Status MakeHandle(KernelContext& c) {
  ResourceHandle handle;
  handle.container = c.op().string_attr("container");
  if (handle.container.empty()) handle.container = "localhost";
  handle.name = c.op().string_attr("shared_name");
  if (handle.name.empty()) handle.name = "summary_writer";
  handle.kind = &typeid(SummaryFile);
  c.set_output(0, Tensor::Scalar<ResourceHandle>(std::move(handle)));
  return OkStatus();
}

HR_OP(SummaryWriter)
    .Traits({kWritesFiles})
    .Output("writer: resource")
    .Attr("shared_name: string = ''")
    .Attr("container: string = ''")
    .Doc("Names a summary writer, to be made by CreateSummaryFileWriter.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeHandle>);

StatusOr<std::shared_ptr<SummaryFile>> OpenFile(const std::string& logdir,
                                                const std::string& suffix,
                                                int max_queue,
                                                int flush_millis) {
  std::string folder;
  HR_ASSIGN_OR_RETURN(FileSystem * fs, FileSystemFor(logdir, &folder));
  HR_RETURN_IF_ERROR(CreateDirectories(fs, folder));
  HR_ASSIGN_OR_RETURN(
      auto writer, EventWriter::Create(fs, JoinPath(folder, "events"), suffix));
  return std::make_shared<SummaryFile>(std::move(writer), max_queue,
                                       flush_millis);
}

Status CreateFile(KernelContext& c) {
  for (int i = 1; i < 5; ++i) {
    if (c.input(i).num_elements() != 1) {
      return InvalidArgument(c.op().def().inputs[i].name,
                             " must be a scalar, got shape ",
                             c.input(i).shape());
    }
  }
  const ResourceHandle& handle = c.input(0).scalar<ResourceHandle>();
  return c.services()
      .resources
      ->LookUpOrCreate<SummaryFile>(handle.container, handle.name,
                                    [&] {
                                      return OpenFile(
                                          c.input(1).scalar<std::string>(),
                                          c.input(4).scalar<std::string>(),
                                          c.input(2).scalar<int32_t>(),
                                          c.input(3).scalar<int32_t>());
                                    })
      .status();
}

HR_OP(CreateSummaryFileWriter)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("logdir: string")
    .Input("max_queue: int32")
    .Input("flush_millis: int32")
    .Input("filename_suffix: string")
    .Doc("Begins an event file in a folder, unless the writer has one.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<CreateFile>);

StatusOr<std::shared_ptr<SummaryFile>> FileOf(const KernelContext& c) {
  return ResourceAs<SummaryFile>(c.input(0), c.services().resources);
}

// An event of now, at the step that input 1 holds.
StatusOr<tensorflow::Event> EventAt(const KernelContext& c) {
  if (c.input(1).num_elements() != 1) {
    return InvalidArgument("step must be scalar, got shape ",
                           c.input(1).shape());
  }
  tensorflow::Event event;
  event.set_step(c.input(1).scalar<int64_t>());
  event.set_wall_time(EventClock());
  return event;
}

Status WriteScalar(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
  if (c.input(2).num_elements() != 1 || c.input(3).num_elements() != 1) {
    return InvalidArgument("tag and value must be scalars, got shapes ",
                           c.input(2).shape(), " and ", c.input(3).shape());
  }
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(c.input(2).scalar<std::string>());
  DispatchDType(c.input(3).dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    value->set_simple_value(static_cast<float>(c.input(3).scalar<T>()));
  });
  return file->Write(event);
}

HR_OP(WriteScalarSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tag: string")
    .Input("value: T")
    .Attr("T: realnumbertype")
    .Doc("Writes one number under a tag.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteScalar>);

Status WriteTensor(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
  if (c.input(3).num_elements() != 1 || c.input(4).num_elements() != 1) {
    return InvalidArgument("tag and summary_metadata must be scalars, got ",
                           c.input(3).shape(), " and ", c.input(4).shape());
  }
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(c.input(3).scalar<std::string>());
  const std::string& metadata = c.input(4).scalar<std::string>();
  if (!metadata.empty() &&
      !value->mutable_metadata()->ParseFromString(metadata)) {
    return InvalidArgument("summary_metadata is no SummaryMetadata");
  }
  HR_RETURN_IF_ERROR(FillTensorProto(c.input(2), value->mutable_tensor()));
  return file->Write(event);
}

HR_OP(WriteSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tensor: T")
    .Input("tag: string")
    .Input("summary_metadata: string")
    .Attr("T: type")
    .Doc("Writes a tensor under a tag.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteTensor>);

// The tag of input `i` in a new event of now.
StatusOr<std::string> TagInput(const KernelContext& c, int i) {
  if (c.input(i).num_elements() == 1) return c.input(i).scalar<std::string>();
  return InvalidArgument("tag must be scalar, got shape ", c.input(i).shape());
}

Status WriteHistogram(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
  HR_ASSIGN_OR_RETURN(const std::string tag, TagInput(c, 2));
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  HR_RETURN_IF_ERROR(FillHistogram(tag, c.input(3), value->mutable_histo()));
  return file->Write(event);
}

HR_OP(WriteHistogramSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tag: string")
    .Input("values: T")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
        "uint16, "
        "half, uint32, uint64, bool} = DT_FLOAT")
    .Doc("Writes how numbers are spread.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteHistogram>);

Status WriteImages(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
  HR_ASSIGN_OR_RETURN(const std::string tag, TagInput(c, 2));
  HR_RETURN_IF_ERROR(AddImages(tag, c.input(3), c.op().int_attr("max_images"),
                               c.input(4), event.mutable_summary()));
  return file->Write(event);
}

HR_OP(WriteImageSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tag: string")
    .Input("tensor: T")
    .Input("bad_color: uint8")
    .Attr("max_images: int >= 1 = 3")
    .Attr("T: {uint8, double, float, half} = DT_FLOAT")
    .Doc("Writes images as PNG files.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteImages>);

Status WriteSounds(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
  HR_ASSIGN_OR_RETURN(const std::string tag, TagInput(c, 2));
  if (c.input(4).num_elements() != 1) {
    return InvalidArgument("sample_rate must be scalar, got shape ",
                           c.input(4).shape());
  }
  HR_RETURN_IF_ERROR(AddSounds(tag, c.input(3), c.op().int_attr("max_outputs"),
                               c.input(4).scalar<float>(),
                               event.mutable_summary()));
  return file->Write(event);
}

HR_OP(WriteAudioSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tag: string")
    .Input("tensor: float")
    .Input("sample_rate: float")
    .Attr("max_outputs: int >= 1 = 3")
    .Doc("Writes sounds as WAV files.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteSounds>);

Status WriteRawProto(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  for (const std::string& s : c.input(2).span<std::string>()) {
    HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
    if (!event.mutable_summary()->ParseFromString(s)) {
      return DataLoss("Bad tf.compat.v1.Summary binary proto tensor string");
    }
    HR_RETURN_IF_ERROR(file->Write(event));
  }
  return OkStatus();
}

HR_OP(WriteRawProtoSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tensor: string")
    .Doc("Writes serialised summaries.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteRawProto>);

Status WriteGraph(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_ASSIGN_OR_RETURN(tensorflow::Event event, EventAt(c));
  if (c.input(2).num_elements() != 1) {
    return InvalidArgument("graph must be a scalar, got shape ",
                           c.input(2).shape());
  }
  event.set_graph_def(c.input(2).scalar<std::string>());
  return file->Write(event);
}

HR_OP(WriteGraphSummary)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("step: int64")
    .Input("tensor: string")
    .Doc("Writes a serialised graph.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<WriteGraph>);

Status Import(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  tensorflow::Event event;
  if (c.input(1).num_elements() != 1 ||
      !event.ParseFromString(c.input(1).scalar<std::string>())) {
    return DataLoss("Bad tf.Event binary proto tensor string");
  }
  return file->Write(event);
}

HR_OP(ImportEvent)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Input("event: string")
    .Doc("Writes a serialised event.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Import>);

Status Flush(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  return file->Flush();
}

HR_OP(FlushSummaryWriter)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Doc("Lets readers of the event file see all that was written.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Flush>);

// Closing deletes the resource; the file ends with its last user.
Status Close(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto file, FileOf(c));
  HR_RETURN_IF_ERROR(file->Flush());
  const ResourceHandle& handle = c.input(0).scalar<ResourceHandle>();
  return c.services().resources->Delete(handle.container, handle.name,
                                        &typeid(SummaryFile));
}

HR_OP(CloseSummaryWriter)
    .Traits({kWritesFiles})
    .Input("writer: resource")
    .Doc("Ends the event file.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Close>);

}  // namespace
}  // namespace headrace
