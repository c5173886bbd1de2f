// The two ends of an edge between devices: a graph that is cut into parts has
// one in each.
#include "op/op.h"
#include "op/rendezvous.h"
#include "op/waiting.h"

namespace headrace {
namespace {

StatusOr<Rendezvous*> TheRendezvous() {
  if (Rendezvous* const current = RendezvousScope::Current()) return current;
  return FailedPrecondition(
      "no rendezvous in this run: it is not part of a cluster's step");
}

// What both ends know of the edge, read once.
class End : public Kernel {
 public:
  explicit End(const ResolvedOp& op) {
    DeviceName from, to;
    const std::string& source = op.string_attr("send_device");
    const std::string& destination = op.string_attr("recv_device");
    if (DeviceName::Parse(source, &from) && from.full() &&
        DeviceName::Parse(destination, &to) && to.full()) {
      const int64_t incarnation = op.int_attr("send_device_incarnation");
      key_ = RendezvousKey::Of(from, static_cast<uint64_t>(incarnation), to,
                               op.string_attr("tensor_name"));
    } else {
      broken_ = InvalidArgument("Invalid  rendezvous key: ", source, ";;",
                                destination);
    }
  }
  bool own_outputs() const override { return true; }

 protected:
  RendezvousKey key_;
  Status broken_;  // where the attributes name no devices
};

class Send : public End {
 public:
  using End::End;
  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(broken_);
    HR_ASSIGN_OR_RETURN(Rendezvous * rendezvous, TheRendezvous());
    // Frames run it for a branch that is not taken, too.
    SentValue value{c.input(0), !c.input(0).has_buffer()};
    return rendezvous->Send(key_, std::move(value));
  }
};

class Recv : public End, public AwaitingKernel {
 public:
  explicit Recv(const ResolvedOp& op)
      : End(op), dtype_(op.type_attr("tensor_type")) {
    const bool* alive = op.attrs().Get<bool>("_alive");
    may_be_dead_ = alive == nullptr || !*alive;
  }

  Status Run(KernelContext& c) override {
    HR_RETURN_IF_ERROR(broken_);
    HR_ASSIGN_OR_RETURN(Rendezvous * rendezvous, TheRendezvous());
    SentValue value;
    if (WaitingRefused()) {
      HR_ASSIGN_OR_RETURN(const bool there,
                          rendezvous->TryReceive(key_, &value));
      if (!there) return WouldWait();
    } else {
      HR_RETURN_IF_ERROR(Receive(*rendezvous, key_, &value));
    }
    // An output without memory is dead; plans of values that never are know
    // no such.
    if (value.dead && !may_be_dead_) {
      return Internal("the tensor that came for ", key_.text, " is dead");
    }
    if (value.dead) return OkStatus();
    if (value.tensor.dtype() != dtype_) {
      return InvalidArgument("the tensor that came for ", key_.text, " is of ",
                             DTypeName(value.tensor.dtype()), ", not ",
                             DTypeName(dtype_));
    }
    c.set_output(0, std::move(value.tensor));
    return OkStatus();
  }

  void Await(std::function<void()> ready) override {
    const StatusOr<Rendezvous*> rendezvous = TheRendezvous();
    if (rendezvous.ok() && broken_.ok()) {
      (*rendezvous)->Await(key_, std::move(ready));
    } else {
      ready();  // to say the error
    }
  }

 private:
  const DType dtype_;
  bool may_be_dead_;
};

// What the other side knows of the value, where who cut the graph says it.
Status RecvShape(ShapeContext& c) {
  const auto* shapes = c.op().attrs().Get<std::vector<Shape>>("_output_shapes");
  if (shapes && shapes->size() == 1) c.set_output(0, shapes->front());
  return OkStatus();
}

// What names the edge.
void AddKeyAttrs(OpBuilder* b) {
  for (const char* attr :
       {"tensor_name: string", "send_device: string",
        "send_device_incarnation: int", "recv_device: string",
        "client_terminated: bool = false"}) {
    b->Attr(attr);
  }
}

OpRegistrar SendOp(const char* name) {
  OpBuilder b(name);
  b.Input("tensor: T").Attr("T: type");
  AddKeyAttrs(&b);
  b.Doc("Leaves a tensor for the device that receives it.")
      .Role(kSendRole)
      .Stateful()
      .Shape(NoOutputs)
      .Cpu(Bind<Send>);
  return b;
}

OpRegistrar RecvOp(const char* name) {
  OpBuilder b(name);
  b.Output("tensor: tensor_type").Attr("tensor_type: type");
  AddKeyAttrs(&b);
  b.Doc("Takes a tensor that another device has sent, when it has come.")
      .Role(kReceiveRole)
      .Traits({kMayWait, kMayBeTried})
      .Stateful()
      .Shape(RecvShape)
      .Cpu(Bind<Recv>);
  return b;
}

[[maybe_unused]] const OpRegistrar kEnds[] = {
    SendOp("_Send"), SendOp("_HostSend"), RecvOp("_Recv"), RecvOp("_HostRecv")};

}  // namespace
}  // namespace headrace
