//! The embedded catalog: complete, without errors, and its market levels are the ones that people know.

use hardware::{Hardware, Severity};
use market::{Market, OfferKind};

fn catalog() -> (Hardware, Market) {
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    (hardware, market)
}

#[test]
fn nothing_is_lost_and_nothing_is_wrong() {
    let (hardware, findings) = Hardware::parse(hardware::GPUS_CSV, hardware::NODES_CSV, hardware::SOURCES_CSV);
    for finding in &findings {
        println!("{finding}");
    }
    assert!(findings.iter().all(|f| f.severity == Severity::Warning), "{findings:?}");
    assert_eq!((hardware.gpus().len(), hardware.nodes().len()), (127, 268));
    let (market, findings) = Market::parse(market::PROVIDERS_CSV, market::OFFERS_CSV, market::SOURCES_CSV, &hardware);
    for finding in &findings {
        println!("{finding}");
    }
    assert!(findings.iter().all(|f| f.severity == Severity::Warning), "{findings:?}");
    assert_eq!((market.providers().len(), market.offers().len()), (45, 1835));
}

#[test]
fn medians_that_people_know() {
    let (_, market) = catalog();
    for (gpu, want, providers) in [
        ("nvidia-h100-sxm", 3.39, 21),
        ("nvidia-a100-sxm-80gb", 1.80, 17),
        ("nvidia-l40s", 0.99, 15),
        ("nvidia-rtx-4090", 0.35, 7),
    ] {
        let stat = market.median_price_per_gpu(gpu).unwrap();
        println!("{gpu}: {} of {} {:?}", stat.usd_per_gpu_hour.0, stat.providers, stat.oldest);
        assert!((stat.usd_per_gpu_hour.0 - want).abs() < 0.005, "{gpu}: {stat:?}");
        assert_eq!(stat.providers, providers, "{gpu}");
    }
}

#[test]
fn kinds_are_typed() {
    let (_, market) = catalog();
    let count = |kind| market.offers().iter().filter(|o| o.kind == kind).count();
    for kind in OfferKind::ALL {
        println!("{}: {}", kind.name(), count(*kind));
    }
    assert_eq!(count(OfferKind::Reserved), 10);
    assert_eq!(count(OfferKind::MarketplaceMedian), 9);
    assert_eq!(count(OfferKind::Estimate), 3);
}
