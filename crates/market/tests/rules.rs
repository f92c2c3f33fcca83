//! Which offer may stand for which node: each rule on rows made for it, then on the embedded catalog.

use hardware::{Hardware, OnSpec, Sources};
use jiff::civil::{Date, date};
use market::{Market, NotRanked, Offer, OfferKind, PriceOrigin, Purchase, Quote, QuoteFilter, RankClass, Tier};
use proptest::prelude::*;
use units::UsdPerHour;

const TODAY: Date = date(2026, 11, 30);
const GPU: &str = "nvidia-h100-sxm";
const HEAD: &str = "provider,instance,gpu,gpu_count,region,on_demand_usd_per_hour,spot_usd_per_hour,kind,tier,commitment,\
currency,spot_basis,sold_counts,extras_billed_apart,date,spot_date\n";

/// A market with the embedded providers and only these offers.
fn with(rows: &str) -> Market {
    let hardware = Hardware::embedded();
    let mut market = Market::default();
    assert_eq!(market.add_providers("p", market::PROVIDERS_CSV, &Sources::default()), []);
    let found = market.add_offers("o", &format!("{HEAD}{rows}"), &Sources::default(), &hardware);
    assert!(found.iter().all(|f| f.severity == hardware::Severity::Warning), "{found:?}");
    market
}

fn on_demand() -> QuoteFilter {
    QuoteFilter::on_demand(TODAY)
}

fn shown(market: &Market, quotes: &[Quote]) -> Vec<String> {
    quotes.iter().map(|q| format!("{} {:.2}", market.offers()[q.offer].provider, q.usd_per_hour.0)).collect()
}

fn reasons(market: &Market, count: u32, filter: &QuoteFilter) -> Vec<(String, NotRanked)> {
    let name = |at: usize| market.offers()[at].provider.to_string();
    market.not_ranked(GPU, count, filter).into_iter().map(|(at, why)| (name(at), why)).collect()
}

#[test]
fn list_price_times_count_only_where_the_node_is_sold_and_below_bookable() {
    // hyperstack has a node type of eight; crusoe says that it sells multiples; runpod says nothing
    let market = with(
        "aws,p5.48xlarge,nvidia-h100-sxm,8,us-east-1,55,,node,,,,,,,2026-11-01,\n\
         hyperstack,per GPU,nvidia-h100-sxm,1,,2.5,,per-gpu,,,,,,,2026-11-01,\n\
         crusoe,per GPU,nvidia-h100-sxm,1,,3.9,,per-gpu,,,,,1|2|4|8,,2026-11-01,\n\
         runpod,per GPU,nvidia-h100-sxm,1,,1.0,,per-gpu,,,,,,,2026-11-01,\n",
    );
    let quotes = market.quotes(GPU, 8, &on_demand());
    assert_eq!(shown(&market, &quotes), ["aws 55.00", "hyperstack 20.00", "crusoe 31.20"]);
    assert_eq!(quotes[0].rank, RankClass::Bookable);
    assert_eq!((quotes[1].rank, quotes[1].list_price_times), (RankClass::ListPriceTimes, Some(8)));
    assert_eq!(quotes[1].marks(), ["list price x 8, NVLink unknown"]);
    assert_eq!(quotes[1].usd_per_gpu_hour, UsdPerHour(2.5));
    assert_eq!(reasons(&market, 8, &on_demand()), [("runpod".into(), NotRanked::NodeNotSold)]);

    let gang = QuoteFilter { multi_node: true, ..on_demand() };
    assert_eq!(shown(&market, &market.quotes(GPU, 8, &gang)), ["aws 55.00"]);
    assert_eq!(reasons(&market, 8, &gang)[0], ("hyperstack".into(), NotRanked::ListPriceForGang));

    // for one GPU a per-GPU price is the price; three are sold by nobody
    assert_eq!(market.quotes(GPU, 1, &on_demand())[0].usd_per_hour, UsdPerHour(1.0));
    assert!(market.quotes(GPU, 3, &on_demand()).is_empty());
}

#[test]
fn what_is_listed_and_never_ranked() {
    let market = with(
        "aws,a,nvidia-h100-sxm,8,,10,,reserved,,3 years,,,,,2026-11-01,\n\
         azure,b,nvidia-h100-sxm,8,,10,,estimate,,,,,,,2026-11-01,\n\
         seeweb,c,nvidia-h100-sxm,8,,10,,node,,,unverified,,,,2026-11-01,\n\
         vultr,d,nvidia-h100-sxm,0.5,,1,,node,,,,,,,2026-11-01,\n\
         gcp,e,nvidia-h100-sxm,8,,,9,node,,,,,,,,2026-11-01\n\
         oci,f,nvidia-h100-sxm,8,,10,,node,,1 year,,,,,2026-11-01,\n",
    );
    assert!(market.quotes(GPU, 8, &on_demand()).is_empty());
    let why: Vec<NotRanked> = reasons(&market, 8, &on_demand()).into_iter().map(|(_, w)| w).collect();
    assert_eq!(
        why,
        [
            NotRanked::Reserved,
            NotRanked::Estimate,
            NotRanked::UnverifiedCurrency,
            NotRanked::PartOfAGpu,
            NotRanked::NotOffered(Purchase::OnDemand),
            NotRanked::Reserved,
        ]
    );
    assert!(market.quotes(GPU, 1, &on_demand()).is_empty());
}

#[test]
fn spot_must_be_quoted_and_says_when_it_saves_nothing() {
    let market = with(
        "aws,a,nvidia-h100-sxm,8,,50,20,node,,,,cheapest-zone,,,2026-11-01,2026-11-02\n\
         verda,b,nvidia-h100-sxm,8,,18,6,node,,,,estimated,,,2026-11-01,2026-11-02\n\
         gcp,c,nvidia-h100-sxm,8,,40,45,node,,,,,,,2026-11-01,\n",
    );
    let spot = QuoteFilter { purchase: Purchase::Spot, ..on_demand() };
    let quotes = market.quotes(GPU, 8, &spot);
    assert_eq!(shown(&market, &quotes), ["aws 20.00", "gcp 45.00"]);
    assert_eq!((quotes[0].no_discount, quotes[0].age_days), (false, Some(28)));
    assert_eq!((quotes[1].no_discount, quotes[1].stale), (true, true));
    assert_eq!(quotes[1].marks(), ["stale: undated", "spot without discount"]);
    assert_eq!(reasons(&market, 8, &spot), [("verda".into(), NotRanked::EstimatedSpot)]);
}

#[test]
fn markets_only_when_asked_and_never_times_eight() {
    let market = with(
        "vastai,median,nvidia-h100-sxm,1,,1.5,,median,marketplace,,,,,,2026-11-01,\n\
         runpod,community,nvidia-h100-sxm,1,,1.2,,per-gpu,community,,,,,,2026-11-01,\n\
         akash,from,nvidia-h100-sxm,1,,0.9,,from,marketplace,,,,1|2|4|8,,2026-11-01,\n\
         lambda,gpu_1x_h100_sxm_80gb,nvidia-h100-sxm,1,,4,,node,,,,,,,2026-11-01,\n",
    );
    assert_eq!(shown(&market, &market.quotes(GPU, 1, &on_demand())), ["lambda 4.00"]);
    assert_eq!(reasons(&market, 1, &on_demand())[1], ("runpod".into(), NotRanked::Tier(Tier::Community)));
    let asked = QuoteFilter { tier_marketplace: true, ..on_demand() };
    let quotes = market.quotes(GPU, 1, &asked);
    assert_eq!(shown(&market, &quotes), ["runpod 1.20", "lambda 4.00", "akash 0.90", "vastai 1.50"]);
    assert!(market.quotes(GPU, 8, &asked).is_empty());
}

#[test]
fn a_marketplace_gpu_times_eight_never_undercuts_a_real_node() {
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    for tier_marketplace in [false, true] {
        for count in [2, 4, 8] {
            let filter = QuoteFilter { tier_marketplace, ..on_demand() };
            let quotes = market.quotes(GPU, count, &filter);
            let first_list = quotes.iter().position(|q| q.list_price_times.is_some()).unwrap_or(quotes.len());
            assert!(quotes[..first_list].iter().all(|q| q.rank == RankClass::Bookable));
            for q in &quotes {
                let offer = &market.offers()[q.offer];
                assert!(!matches!(offer.kind, OfferKind::MarketplaceMedian | OfferKind::From), "{}", offer.name());
                assert!(!matches!(&*offer.provider, "vastai" | "akash" | "runpod" | "spheron"), "{}", offer.name());
            }
        }
    }
    let best = &market.quotes(GPU, 8, &on_demand())[0];
    assert_eq!(market.offers()[best.offer].name(), "lambda/gpu_8x_h100_sxm_80gb");
    assert_eq!((best.usd_per_hour, best.stale), (UsdPerHour(31.92), false));
}

#[test]
fn offers_match_a_node_by_name_then_by_gpu_and_count() {
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    let names = |node: &str| -> Vec<String> {
        let quotes = market.quotes_for_node(hardware.find_node(node).unwrap(), &on_demand());
        let mut names: Vec<String> = quotes.iter().map(|q| market.offers()[q.offer].instance.to_string()).collect();
        names.dedup();
        names
    };
    // with and without InfiniBand are two products
    assert_eq!(names("azure/Standard_ND96isr_H100_v5"), ["Standard_ND96isr_H100_v5"]);
    assert_eq!(names("azure/Standard_ND96is_H100_v5"), ["Standard_ND96is_H100_v5"]);
    // the provider words it differently in its price list; its per-GPU price stands below
    assert_eq!(names("coreweave-hgx-h100"), ["8x hgx-h100", "NVIDIA HGX H100 SXM 80GB per GPU"]);
    // a node that is only listed per GPU
    assert_eq!(names("nebius-gpu-h100-sxm_8gpu-128vcpu-1600gb"), ["NVIDIA HGX H100 (per GPU)"]);
    // nobody rents a reference system under its name
    assert!(names("dgx-h100").is_empty());
    assert!(market.offers_for_shape(GPU, 8).len() > 20);

    let spec: OnSpec = "coreweave/8x hgx-h100".parse().unwrap();
    let (shape, nodes, offers) = market.resolve_on(&spec, &hardware).unwrap();
    assert_eq!((shape.gpus, nodes, offers.len()), (8, 1, 1));
    let spec: OnSpec = "2xaws/p5.48xlarge".parse().unwrap();
    let (shape, nodes, offers) = market.resolve_on(&spec, &hardware).unwrap();
    assert_eq!((shape.id.as_str(), nodes, offers.is_empty()), ("aws-p5.48xlarge", 2, false));
    assert!(market.resolve_on(&"aws/p9.nothing".parse().unwrap(), &hardware).is_err());
}

#[test]
fn providers_and_regions_filter() {
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    let filter = QuoteFilter { providers: vec!["aws".into()], regions: vec!["us-east".into()], ..on_demand() };
    let quotes = market.quotes(GPU, 8, &filter);
    assert!(!quotes.is_empty());
    for q in &quotes {
        let o = &market.offers()[q.offer];
        assert!(&*o.provider == "aws" && o.region.starts_with("us-east"), "{} {}", o.name(), o.region);
    }
    let none = QuoteFilter { providers: vec!["nobody".into()], ..on_demand() };
    assert!(market.quotes(GPU, 8, &none).is_empty());
}

#[test]
fn filters_hold_for_node_types_and_the_users_price_passes_them() {
    let hardware = Hardware::embedded();
    let node = hardware.find_node("aws/p5.48xlarge").unwrap();
    let lambda_only = QuoteFilter { providers: vec!["lambda".into()], ..on_demand() };
    let market = Market::embedded(&hardware);
    assert!(market.quotes_for_node(node, &lambda_only).is_empty());
    let market = market.with_price_override(GPU, UsdPerHour(2.0));
    let quotes = market.quotes_for_node(node, &lambda_only);
    assert_eq!(shown(&market, &quotes), ["user 16.00"]);
    assert_eq!(market.node_id(&market.offers()[market.offers_for(node)[0]]), Some("aws-p5.48xlarge"));
}

#[test]
fn stale_is_older_than_ninety_days_or_undated() {
    let market = with(
        "aws,a,nvidia-h100-sxm,8,,50,,node,,,,,,,2026-09-01,\n\
         gcp,b,nvidia-h100-sxm,8,,51,,node,,,,,,,2026-08-31,\n\
         oci,c,nvidia-h100-sxm,8,,52,,node,,,,,,,2026-11,\n\
         azure,d,nvidia-h100-sxm,8,,53,,node,,,,,,,,\n",
    );
    let ages: Vec<(Option<i64>, bool)> =
        market.offers().iter().map(|o| (o.age_days(TODAY), o.is_stale(TODAY))).collect();
    assert_eq!(ages, [(Some(90), false), (Some(91), true), (None, true), (None, true)]);
    assert_eq!(&*market.offers()[2].date_text, "2026-11");
    let quotes = market.quotes(GPU, 8, &on_demand());
    assert_eq!(quotes[1].marks(), ["stale: 91 days old"]);
    let market =
        with("oci,c,nvidia-h100-sxm,8,,52,,node,,,,,,,,\naws,a,nvidia-h100-sxm,8,,60,,node,,,,,,,2026-11-29,\n");
    let quotes = market.quotes(GPU, 8, &on_demand());
    assert!(quotes[0].stale);
    assert_eq!(Market::best_fresh(&quotes).unwrap().usd_per_hour, UsdPerHour(60.0));
}

#[test]
fn the_users_price_replaces_every_quote_of_that_gpu() {
    let hardware = Hardware::embedded();
    let before = Market::embedded(&hardware);
    let market = before.clone().with_price_override(GPU, UsdPerHour(2.10));
    let quotes = market.quotes(GPU, 8, &on_demand());
    assert!(quotes.len() > 10);
    for q in &quotes {
        let offer = &market.offers()[q.offer];
        assert!((q.usd_per_hour.0 - 16.8).abs() < 1e-9, "{}", offer.name());
        assert_eq!(offer.origin, PriceOrigin::User);
        assert!(!q.stale && offer.notes.contains("price given by you: $2.10/h per GPU"), "{}", offer.notes);
    }
    let kinds = |m: &Market| m.offers().iter().filter(|o| *o.gpu == *GPU).map(|o| o.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&before), kinds(&market)[..kinds(&before).len()]);
    assert_eq!(market.overrides()[0].offers, kinds(&before).len());
    // the price holds for shapes that nobody offers, and for gangs; other GPUs keep theirs
    let gang = QuoteFilter { multi_node: true, ..on_demand() };
    let three = market.quotes(GPU, 3, &gang);
    assert_eq!((three.len(), three[0].usd_per_gpu_hour), (1, UsdPerHour(2.10)));
    assert_eq!(
        before.median_price_per_gpu("nvidia-l40s").unwrap().usd_per_gpu_hour,
        market.median_price_per_gpu("nvidia-l40s").unwrap().usd_per_gpu_hour
    );
    let spot = QuoteFilter { purchase: Purchase::Spot, ..on_demand() };
    for q in market.quotes(GPU, 8, &spot) {
        assert!((q.usd_per_hour.0 - 16.8).abs() < 1e-9 && !q.no_discount && !q.stale);
    }
    // twice: the last one counts
    let market = market.with_price_override(GPU, UsdPerHour(3.0));
    assert!((market.quotes(GPU, 8, &on_demand())[0].usd_per_hour.0 - 24.0).abs() < 1e-9);
    assert_eq!(market.overrides().len(), 1);
    // a GPU that nobody sells
    let market = market.with_price_override("nvidia-rubin-vr200", UsdPerHour(9.0));
    assert_eq!(market.quotes("nvidia-rubin-vr200", 8, &on_demand())[0].usd_per_hour, UsdPerHour(72.0));
}

#[test]
fn statistics_count_each_provider_once() {
    let market = with(
        "aws,a,h100-sxm,8,us,80,,node,,,,,,,2026-11-01,\n\
         aws,a,nvidia-h100-sxm,8,eu,96,,node,,,,,,,2026-10-01,\n\
         aws,b,nvidia-h100-sxm,1,us,11,,node,,,,,,,2026-10-01,\n\
         lambda,c,nvidia-h100-sxm,1,,4,,per-gpu,,,,,,,2026-10-05,\n\
         verda,d,nvidia-h100-sxm,1,,2,1,per-gpu,,,,,,,,\n\
         seeweb,e,nvidia-h100-sxm,1,,1,,node,,,unverified,,,,2026-11-01,\n\
         oci,f,nvidia-h100-sxm,1,,1,,reserved,,,,,,,2026-11-01,\n\
         crusoe,g,nvidia-h100-sxm,1,,1,,estimate,,,,,,,2026-11-01,\n",
    );
    let stat = market.median_price_per_gpu(GPU).unwrap();
    assert_eq!((stat.providers, stat.usd_per_gpu_hour), (3, UsdPerHour(4.0)));
    assert_eq!((stat.lowest, stat.highest), (UsdPerHour(2.0), UsdPerHour(10.0)));
    assert_eq!((stat.oldest, stat.undated), (Some(date(2026, 10, 5)), 1));
    assert_eq!(stat.votes.len(), 3);
    assert_eq!(market.median_price_per_gpu("nvidia-b200-sxm"), None);
}

#[test]
fn problems_name_file_and_line() {
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    let rows = "aws,a,nvidia-h100,8,,1,,node,,,,,,,2026-11-01,\n\
                nobody,a,nvidia-h100-sxm,8,,1,,node,,,,,,,2026-11-01,\n\
                aws,b,nvidia-h100-sxm,8,,0,,node,,,,,,,2026-11-01,\n\
                aws,c,nvidia-h100-sxm,8,,-3,,bargain,,,,,,,01.11.2026,\n\
                aws,d,nvidia-h100-sxm,8,,1600,,node,,,,,,,2026-11-01,\n\
                aws,d,nvidia-h100-sxm,8,,16,,node,,,,,,,2026-11-01,\n";
    let found = market::check_offers("mine.csv", &format!("{HEAD}{rows}"), &hardware, &market);
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "mine.csv:2: error: `nvidia-h100` can be several GPUs: h100-sxm, h100-sxm-96gb, h100-sxm-64gb, h100-pcie, h100-nvl; type the one you mean: `h100-sxm`, `h100-sxm-96gb`, `h100-sxm-64gb`, `h100-pcie` or `h100-nvl`",
            "mine.csv:3: error: provider `nobody` is not in the catalog; add it to `providers.csv`",
            "mine.csv:4: error: `on_demand_usd_per_hour` is 0: leave it blank where there is no price",
            "mine.csv:4: warning: neither an on-demand nor a spot price: listed only",
            "mine.csv:5: error: `on_demand_usd_per_hour` is -3, outside 0 to 1000000",
            "mine.csv:5: warning: neither an on-demand nor a spot price: listed only",
            "mine.csv:5: error: `kind`: `bargain` is none of its words",
            "mine.csv:5: error: `date`: `01.11.2026` is neither YYYY-MM-DD nor YYYY-MM",
            "mine.csv:6: warning: `on_demand_usd_per_hour` comes to $200.0000 per GPU-hour, outside 0.05 to 100; per GPU or per node?",
            "mine.csv:7: error: offer `aws/d` in `` stands twice, first in line 6",
        ]
    );
    let found = market::check_providers("p.csv", "id,name,billing_granularity_s\nx,X,second\nx,X,1\nY,Y,1\n");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "p.csv:2: error: `billing_granularity_s`: `second` is not a number",
            "p.csv:3: error: provider `x` stands twice in this file",
            "p.csv:4: error: provider id `Y` has other characters than a-z, 0-9 and `-`",
        ]
    );
}

/// An offer that no rule excludes keeps its whole price.
fn whole_price(o: &Offer) -> bool {
    o.on_demand.is_none_or(|p| p.0 > 0.0) && o.spot.is_none_or(|p| p.0 > 0.0)
}

#[test]
fn quotes_are_ordered_and_deterministic_for_every_gpu() {
    let hardware = Hardware::embedded();
    let market = Market::embedded(&hardware);
    assert!(market.offers().iter().all(whole_price));
    for gpu in hardware.gpus() {
        for count in 1..=8 {
            let quotes = market.quotes(&gpu.id, count, &on_demand());
            assert_eq!(quotes, market.quotes(&gpu.id, count, &on_demand()));
            for pair in quotes.windows(2) {
                assert!((pair[0].rank, pair[0].usd_per_hour.0) <= (pair[1].rank, pair[1].usd_per_hour.0));
            }
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,300}") {
        let hardware = Hardware::default();
        let _ = Market::parse(&text, &text, &text, &hardware);
    }

    #[test]
    fn arbitrary_cells_never_panic(cells in proptest::collection::vec("[-0-9.eEnaif|\" x]{0,10}", 12)) {
        let hardware = Hardware::embedded();
        let market = Market::embedded(&hardware);
        let csv = format!("{HEAD}aws,x,nvidia-h100-sxm,{}\n", cells.join(","));
        let _ = market::check_offers("o", &csv, &hardware, &market);
    }
}
