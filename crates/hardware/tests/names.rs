//! What people type, and what they get.

use hardware::{Hardware, LookupError, OnError, OnSpec, Topology};
use proptest::prelude::*;

fn hardware() -> Hardware {
    Hardware::embedded()
}

#[test]
fn gpus_are_found_exactly() {
    let h = hardware();
    for (text, id) in [
        ("nvidia-h100-sxm", "nvidia-h100-sxm"),
        ("h100-sxm", "nvidia-h100-sxm"),
        ("H100-SXM", "nvidia-h100-sxm"),
        ("NVIDIA H100 SXM", "nvidia-h100-sxm"),
        ("rtx4090", "nvidia-rtx-4090"),
        ("RTX 4090", "nvidia-rtx-4090"),
        ("mi300x", "amd-mi300x"),
        ("a100_pcie_80gb", "nvidia-a100-pcie-80gb"),
    ] {
        assert_eq!(h.find_gpu(text).unwrap().id, id, "{text}");
    }
}

#[test]
fn near_misses_get_suggestions_and_variants_are_not_guessed() {
    let h = hardware();
    let miss = |text: &str| h.find_gpu(text).unwrap_err();
    let e = miss("h10");
    assert_eq!(e.to_string(), "no catalog GPU is called `h10`");
    assert_eq!(e.hint(), "did you mean `h100-sxm`, `h100-pcie` or `h100-nvl`?");
    let e = miss("h100");
    assert!(matches!(e, LookupError::AmbiguousGpu { .. }), "{e:?}");
    assert_eq!(e.suggestions(), ["h100-sxm", "h100-sxm-96gb", "h100-sxm-64gb", "h100-pcie", "h100-nvl"]);
    assert_eq!(miss("A100-80GB").suggestions(), ["a100-sxm-80gb", "a100-pcie-80gb"]);
    assert!(matches!(miss("a100"), LookupError::AmbiguousGpu { .. }));
    assert_eq!(miss("nvidia-b200").suggestions(), ["b200-sxm"]);
    assert_eq!(miss("h100-sxm5").suggestions()[0], "h100-sxm");
    assert!(miss("zzzzzzzz").suggestions().is_empty());
    assert!(miss("").suggestions().is_empty());
}

#[test]
fn nodes_by_id_and_by_provider_and_instance() {
    let h = hardware();
    for text in ["aws/p5.48xlarge", "aws-p5.48xlarge", "AWS/P5.48xlarge", "p5.48xlarge"] {
        assert_eq!(h.find_node(text).unwrap().id, "aws-p5.48xlarge", "{text}");
    }
    assert_eq!(h.find_node("dgx-b200").unwrap().id, "dgx-b200");
    assert_eq!(h.find_node("aws/p5.48xlrge").unwrap_err().suggestions()[0], "aws-p5.48xlarge");
}

#[test]
fn on_grammar() {
    let h = hardware();
    let get = |text: &str| {
        let (shape, nodes) = text.parse::<OnSpec>().unwrap().resolve(&h).unwrap();
        (nodes, shape.gpus, shape.gpu.short_id().to_owned(), shape.id)
    };
    assert_eq!(get("8xh100-sxm"), (1, 8, "h100-sxm".into(), "generic/8xh100-sxm".into()));
    assert_eq!(get("2x8xh200-sxm"), (2, 8, "h200-sxm".into(), "generic/8xh200-sxm".into()));
    assert_eq!(get("2 x 8 x h200-sxm"), (2, 8, "h200-sxm".into(), "generic/8xh200-sxm".into()));
    assert_eq!(get("generic/8xh100-sxm"), get("8xh100-sxm"));
    assert_eq!(get("2xgeneric/8xh100-sxm"), get("2x8xh100-sxm"));
    assert_eq!(get("dgx-b200"), (1, 8, "b200-sxm".into(), "dgx-b200".into()));
    assert_eq!(get("2xdgx-b200"), (2, 8, "b200-sxm".into(), "dgx-b200".into()));
    assert_eq!(get("aws/p5.48xlarge"), (1, 8, "h100-sxm".into(), "aws-p5.48xlarge".into()));
    assert_eq!(get("4xaws-p5.48xlarge").0, 4);
    assert_eq!(get("rtx-4090"), (1, 1, "rtx-4090".into(), "generic/1xrtx-4090".into()));
    let (shape, _) = "72xgb200".parse::<OnSpec>().unwrap().resolve(&h).unwrap();
    assert_eq!(shape.topology, Topology::NvSwitch { domain: 72 });
}

#[test]
fn on_refusals_say_what_is_wrong() {
    let h = hardware();
    let why = |text: &str| match text.parse::<OnSpec>().and_then(|s| s.resolve(&h)) {
        Ok(found) => panic!("{text}: {found:?}"),
        Err(e) => e.to_string(),
    };
    assert_eq!(why(""), "`` names no GPU and no node type");
    assert_eq!(why("8x"), "`8x` names no GPU and no node type");
    assert_eq!(why("0xh100-sxm"), "`0` in `0xh100-sxm` is not a count of at least 1");
    assert_eq!(why("-8xh100-sxm"), "`-8` in `-8xh100-sxm` is not a count of at least 1");
    assert_eq!(why("0.5xh100-sxm"), "`0.5` in `0.5xh100-sxm` is not a count of at least 1");
    assert_eq!(why("9999999xh100-sxm"), "9999999 nodes or GPUs in `9999999xh100-sxm`; the limit is 4096");
    assert_eq!(
        why("99999999999999999999xh100-sxm"),
        "`99999999999999999999` in `99999999999999999999xh100-sxm` is not a count of at least 1"
    );
    assert_eq!(why("577xh100-sxm"), "577 GPUs per node in `577xh100-sxm`; the limit is 576");
    assert_eq!(why("2x2x2xh100-sxm"), "`2x2x2xh100-sxm` has one count too many");
    assert_eq!(why("2x8xdgx-b200"), "`2x8xdgx-b200` has one count too many");
    assert_eq!(why("8xh10"), "no catalog GPU is called `h10`");
    assert!(why("8xh100").starts_with("`h100` can be several GPUs"));
    assert_eq!(why("aws/p9.48xlarge"), "no catalog node type is called `aws/p9.48xlarge`");
    assert_eq!(why("aws/g6f.xlarge"), "`aws-g6f.xlarge` is a part of a GPU, and a model is laid out on whole ones");
    let e = "8xh10".parse::<OnSpec>().unwrap().resolve(&h).unwrap_err();
    assert!(matches!(e, OnError::Lookup(_)));
    assert_eq!(e.hint(), "did you mean `h100-sxm`, `h100-pcie` or `h100-nvl`?");
}

proptest! {
    #[test]
    fn on_specs_round_trip(nodes in 1u32..=4096, gpus in 1u32..=576, which in 0usize..127) {
        let h = hardware();
        let gpu = h.gpus()[which].short_id().to_owned();
        for spec in [OnSpec::of_gpus(nodes, gpus, &gpu), OnSpec::of_node(nodes, "dgx-b200")] {
            let again: OnSpec = spec.to_string().parse().unwrap();
            prop_assert_eq!(&again, &spec);
            prop_assert_eq!(again.resolve(&h).unwrap().1, nodes);
        }
        let shape = OnSpec::of_gpus(nodes, gpus, &gpu).resolve(&h).unwrap().0;
        // the id that output shows is something to type
        prop_assert_eq!(shape.id.parse::<OnSpec>().unwrap().resolve(&h).unwrap().0, shape);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let h = hardware();
        let _ = h.find_gpu(&text);
        let _ = h.find_node(&text);
        if let Ok(spec) = text.parse::<OnSpec>() {
            prop_assert_eq!(spec.to_string().parse::<OnSpec>(), Ok(spec.clone()));
            let _ = spec.resolve(&h);
        }
    }

    #[test]
    fn counts_and_names_of_any_kind(text in "[-+0-9x. a-h/]{0,24}") {
        let _ = text.parse::<OnSpec>().map(|s| s.resolve(&hardware()));
    }
}
