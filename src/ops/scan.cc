// scan as jax.lax.scan has it: a while loop over the step, with slices read from xs and written to ys.
#include "ops/scan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "graph/emitter.h"
#include "graph/trace.h"
#include "ops/control.h"

namespace t5x::ops {
namespace {

const TensorType kIndex{DType::kInt32, {}};
const TensorType kBoolean{DType::kBool, {}};

std::vector<TensorType> infer_scan(const InferContext& c) {
  const auto& spec = std::any_cast<const ScanSpec&>(c.extra);
  std::vector<TensorType> outputs = c.regions[0]->output_types();
  if (outputs.size() < spec.num_carry) {
    throw_error<ShapeError>("the body of a scan gives {} values for {} carries", outputs.size(),
                            spec.num_carry);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i >= spec.num_carry) {
      outputs[i] = stacked_type(outputs[i], spec.length);
    } else if (outputs[i] != c.inputs[i]) {
      throw_error<ShapeError>(
          "carry {} of a scan starts as {} and leaves the body as {}; convert one of them", i,
          c.inputs[i].describe(), outputs[i].describe());
    }
  }
  return outputs;
}

// Emission: operands and results of the while are the step, the carries, then the ys that something reads.
class ScanEmission {
 public:
  ScanEmission(Emitter& emitter, const Node& node)
      : e_(emitter), node_(node), spec_(std::any_cast<const ScanSpec&>(node.extra)), body_(*node.regions[0]) {
    for (size_t k = spec_.num_carry; k < node.results.size(); ++k) {
      if (e_.is_live(node.results[k])) ys_.push_back(k);
    }
  }

  void emit() {
    if (spec_.length == 0) {
      bind_results([this](size_t i) { return e_.name(node_.inputs[i]); },
                   [this](size_t i) { return e_.splat(e_.type(node_.results[ys_[i]]), 0); });
      return;
    }
    std::vector<std::string> operands{e_.splat(kIndex, 0)};
    std::vector<TensorType> types{kIndex};
    for (size_t i = 0; i < spec_.num_carry; ++i) {
      operands.push_back(e_.name(node_.inputs[i]));
      types.push_back(e_.type(node_.inputs[i]));
    }
    for (size_t k : ys_) {
      types.push_back(e_.type(node_.results[k]));
      operands.push_back(e_.splat(types.back(), 0));
    }
    const std::string base = e_.begin_op("stablehlo.while", operands, operands.size());
    emit_condition(types);
    emit_body(types);
    e_.end_op("", types, types);
    auto result = [&](size_t i) { return operands.size() > 1 ? fmt::format("{}#{}", base, i) : base; };
    bind_results([&](size_t i) { return result(1 + i); },
                 [&](size_t i) { return result(1 + spec_.num_carry + i); });
  }

 private:
  template <class Carry, class Y>
  void bind_results(Carry carry, Y y) {
    for (size_t i = 0; i < spec_.num_carry; ++i) e_.bind(node_.results[i], carry(i));
    for (size_t i = 0; i < ys_.size(); ++i) e_.bind(node_.results[ys_[i]], y(i));
  }

  void emit_condition(const std::vector<TensorType>& types) {
    const std::vector<std::string> args = e_.begin_block(types);
    const std::string limit = e_.splat(kIndex, static_cast<double>(spec_.length));
    e_.end_block({e_.op("stablehlo.compare", {args[0], limit}, {kIndex, kIndex},
                        "comparison_direction = #stablehlo<comparison_direction LT>", kBoolean)},
                 {kBoolean});
  }

  void emit_body(const std::vector<TensorType>& types) {
    const std::vector<std::string> args = e_.begin_block(types, false);
    std::string position = args[0];
    if (spec_.reverse) {
      const std::string last = e_.splat(kIndex, static_cast<double>(spec_.length - 1));
      position = e_.op("stablehlo.subtract", {last, args[0]}, {kIndex, kIndex}, "", kIndex);
    }
    const std::string zero = e_.splat(kIndex, 0);
    std::vector<std::string> inner(args.begin() + 1, args.begin() + 1 + static_cast<long>(spec_.num_carry));
    for (size_t i = 0; i < spec_.num_xs; ++i)
      inner.push_back(read_slice(node_.inputs[spec_.num_carry + i], position, zero));
    for (std::string& capture : e_.capture_names(node_)) inner.push_back(std::move(capture));
    const std::vector<std::string> outputs = e_.inline_graph(body_, inner);

    const std::string one = e_.splat(kIndex, 1);
    std::vector<std::string> next{e_.op("stablehlo.add", {args[0], one}, {kIndex, kIndex}, "", kIndex)};
    next.insert(next.end(), outputs.begin(), outputs.begin() + static_cast<long>(spec_.num_carry));
    for (size_t i = 0; i < ys_.size(); ++i) {
      next.push_back(write_slice(args[1 + spec_.num_carry + i], types[1 + spec_.num_carry + i],
                                 outputs[ys_[i]], position, zero));
    }
    e_.end_block(next, types);
  }

  // Operands of a slice at `position` along the first axis.
  static void add_starts(std::vector<std::string>& operands, std::vector<TensorType>& types, size_t rank,
                         const std::string& position, const std::string& zero) {
    for (size_t axis = 0; axis < rank; ++axis) {
      operands.push_back(axis == 0 ? position : zero);
      types.push_back(kIndex);
    }
  }

  std::string read_slice(ValueId x, const std::string& position, const std::string& zero) {
    const TensorType& type = e_.type(x);
    const TensorType one = stacked_type(slice_type(type), 1);
    std::vector<std::string> operands{e_.name(x)};
    std::vector<TensorType> types{type};
    add_starts(operands, types, type.shape.rank(), position, zero);
    const std::string row = e_.op("stablehlo.dynamic_slice", operands, types,
                                  "slice_sizes = " + to_mlir(Attribute(one.shape.dims())), one);
    return e_.op("stablehlo.reshape", {row}, {one}, "", slice_type(type));
  }

  std::string write_slice(const std::string& buffer, const TensorType& type, const std::string& value,
                          const std::string& position, const std::string& zero) {
    const TensorType one = stacked_type(slice_type(type), 1);
    const std::string row = e_.op("stablehlo.reshape", {value}, {slice_type(type)}, "", one);
    std::vector<std::string> operands{buffer, row};
    std::vector<TensorType> types{type, one};
    add_starts(operands, types, type.shape.rank(), position, zero);
    return e_.op("stablehlo.dynamic_update_slice", operands, types, "", type);
  }

  Emitter& e_;
  const Node& node_;
  const ScanSpec& spec_;
  const Graph& body_;
  std::vector<size_t> ys_;  // places among the results
};

const Primitive kScan{
    .name = "scan", .infer = infer_scan, .vjp = scan_vjp, .emit = [](Emitter& e, const Node& node) {
      ScanEmission(e, node).emit();
    }};

}  // namespace

TensorType slice_type(const TensorType& type) {
  return {type.dtype, Shape(std::vector<int64_t>(type.shape.begin() + 1, type.shape.end()))};
}

TensorType stacked_type(const TensorType& type, int64_t length) {
  std::vector<int64_t> dims{length};
  dims.insert(dims.end(), type.shape.begin(), type.shape.end());
  return {type.dtype, Shape(dims)};
}

std::vector<Tensor> apply_scan(const ScanSpec& spec, std::vector<Tensor> inputs,
                               std::shared_ptr<const Graph> body, std::vector<Tensor> captures) {
  return apply_multi({.primitive = kScan,
                      .inputs = std::move(inputs),
                      .extra = spec,
                      .regions = {std::move(body)},
                      .captures = std::move(captures)});
}

ScanResult scan(
    const Tensors& init, const Tensors& xs, int64_t length,
    const std::function<std::pair<Tensors, Tensors>(const Tensors& carry, const Tensors& x)>& body,
    bool reverse) {
  const ScanSpec spec{init.size(), xs.size(), length, reverse};
  if (length < 0) throw_error<ShapeError>("scan: the length {} is negative", length);
  std::vector<TensorType> types;
  for (const Tensor& carry : init) types.push_back(carry.type());
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].rank() == 0 || xs[i].dim(0) != length) {
      throw_error<ShapeError>("scan: x {} is {}; its first axis must have the length {}", i,
                              xs[i].type().describe(), length);
    }
    types.push_back(slice_type(xs[i].type()));
  }
  Region region = trace_region(types, [&](const std::vector<Tensor>& args) {
    const auto split = args.begin() + static_cast<long>(init.size());
    auto [carry, ys] = body(Tensors(args.begin(), split), Tensors(split, args.end()));
    if (carry.size() != init.size()) {
      throw_error<ShapeError>("scan: the body takes {} carries and returns {}", init.size(), carry.size());
    }
    carry.insert(carry.end(), ys.begin(), ys.end());
    return carry;
  });
  std::vector<Tensor> inputs = init;
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  const std::vector<Tensor> results = apply_scan(spec, std::move(inputs), region.graph, region.captures);
  const auto split = results.begin() + static_cast<long>(init.size());
  return {Tensors(results.begin(), split), Tensors(split, results.end())};
}

}  // namespace t5x::ops
