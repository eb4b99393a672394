// Rows → responses of the API.
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::{engine::general_purpose::URL_SAFE_NO_PAD, Engine};
use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::Row;

use crate::{sum, Keys};

const LIMIT: usize = 20;

/// An integer of any width.
#[derive(Clone, Copy, Serialize)]
#[serde(transparent)]
struct Int(i64);

impl<'a> FromSql<'a> for Int {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Int(match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            _ => i64::from_sql(ty, raw)?,
        }))
    }
    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8)
    }
}

/// `YYYY-MM-DD HH:MM:SS` in UTC.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Moment(OffsetDateTime);

impl<'a> FromSql<'a> for Moment {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        OffsetDateTime::from_sql(ty, raw).map(Moment)
    }
    fn accepts(ty: &Type) -> bool {
        <OffsetDateTime as FromSql>::accepts(ty)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = *b"0000-00-00 00:00:00";
        let mut put = |from: usize, to: usize, mut number: u32| {
            for at in (from..to).rev() {
                text[at] += (number % 10) as u8;
                number /= 10;
            }
        };
        put(0, 4, self.0.year() as u32);
        put(5, 7, self.0.month() as u32);
        put(8, 10, self.0.day().into());
        put(11, 13, self.0.hour().into());
        put(14, 16, self.0.minute().into());
        put(17, 19, self.0.second().into());
        serializer.serialize_str(std::str::from_utf8(&text).expect("digits"))
    }
}

fn json(answer: &impl Serialize) -> Option<Vec<u8>> {
    Some(serde_json::to_vec(answer).expect("an answer of plain values"))
}

#[derive(Serialize)]
struct Profile<'a> {
    id: Int,
    username: &'a str,
    display_name: &'a str,
    bio: Option<&'a str>,
    profile_picture: Option<&'a str>,
    created_at: Moment,
    achievements_count: Int,
    connections_count: Int,
}

pub fn profile(rows: &[Row], _: &Keys) -> Option<Vec<u8>> {
    let row = rows.first()?;
    json(&Profile {
        id: row.get(0),
        username: row.get(1),
        display_name: row.get(2),
        bio: row.get(3),
        profile_picture: row.get(4),
        created_at: row.get(5),
        achievements_count: row.get(6),
        connections_count: row.get(7),
    })
}

#[derive(Serialize)]
struct Card<'a> {
    id: Int,
    username: &'a str,
    display_name: &'a str,
    profile_picture: Option<&'a str>,
}

/// An embedded user summary from four columns, starting at column `at`.
fn card(row: &Row, at: usize) -> Card<'_> {
    Card { id: row.get(at), username: row.get(at + 1), display_name: row.get(at + 2), profile_picture: row.get(at + 3) }
}

#[derive(Serialize)]
struct List<T> {
    data: Vec<T>,
    pagination: Pagination,
}

#[derive(Serialize)]
struct Pagination {
    limit: usize,
    count: usize,
    total: Int,
    has_more: bool,
    next_cursor: Option<String>,
    prev_cursor: Option<String>,
    sort: &'static str,
}

/// A list's rows begin with its total; a list without rows is one row of nulls. `id` and `sorted_by`: numbers of columns.
fn list<'a, T: Serialize>(
    rows: &'a [Row],
    keys: &Keys,
    sort: &'static str,
    id: usize,
    sorted_by: usize,
    item: impl Fn(&'a Row) -> T,
) -> Option<Vec<u8>> {
    let first = rows.first()?;
    let found = if first.get::<_, Option<Int>>(id).is_none() { &[] } else { rows };
    let shown = &found[..found.len().min(LIMIT)];
    let has_more = found.len() > LIMIT;
    let next_cursor = has_more.then(|| {
        let last = &shown[LIMIT - 1];
        let payload = serde_json::to_vec(&("after", last.get::<_, Option<Moment>>(sorted_by), last.get::<_, Int>(id)));
        let payload = payload.expect("a cursor of plain values");
        let mac = sum(&keys.cursor, &[sort.as_bytes(), &payload]);
        URL_SAFE_NO_PAD.encode([&mac[..16], &payload].concat())
    });
    let total = first.get::<_, Option<Int>>(0).unwrap_or(Int(0));
    json(&List {
        data: shown.iter().map(item).collect(),
        pagination: Pagination {
            limit: LIMIT,
            count: shown.len(),
            total,
            has_more,
            next_cursor,
            prev_cursor: None,
            sort,
        },
    })
}

#[derive(Serialize)]
struct Place<'a> {
    name: Option<&'a str>,
    city: Option<&'a str>,
    country_code: Option<&'a str>,
}

#[derive(Serialize)]
struct Event<'a> {
    id: Int,
    title: &'a str,
    summary: Option<&'a str>,
    status: &'a str,
    visibility: &'a str,
    starts_at: Moment,
    ends_at: Option<Moment>,
    timezone: &'a str,
    starts_at_local: &'a str,
    ends_at_local: Option<&'a str>,
    is_all_day: bool,
    is_online: bool,
    location: Option<Place<'a>>,
    cover_image: Option<&'a str>,
    organizer: Card<'a>,
    role: &'a str,
    rsvp_status: Option<&'a str>,
    attendees_count: Int,
    capacity: Option<Int>,
    created_at: Moment,
    updated_at: Moment,
}

pub fn events(rows: &[Row], keys: &Keys) -> Option<Vec<u8>> {
    list(rows, keys, "-starts_at", 1, 6, |row| {
        let place = Place { name: row.get(13), city: row.get(14), country_code: row.get(15) };
        let is_somewhere = place.name.or(place.city).or(place.country_code).is_some();
        Event {
            id: row.get(1),
            title: row.get(2),
            summary: row.get(3),
            status: row.get(4),
            visibility: row.get(5),
            starts_at: row.get(6),
            ends_at: row.get(7),
            timezone: row.get(8),
            starts_at_local: row.get(9),
            ends_at_local: row.get(10),
            is_all_day: row.get(11),
            is_online: row.get(12),
            location: is_somewhere.then_some(place),
            cover_image: row.get(16),
            organizer: card(row, 17),
            role: row.get(21),
            rsvp_status: row.get(22),
            attendees_count: row.get(23),
            capacity: row.get(24),
            created_at: row.get(25),
            updated_at: row.get(26),
        }
    })
}

#[derive(Serialize)]
struct Met<'a> {
    id: Int,
    title: &'a str,
}

#[derive(Serialize)]
struct Connection<'a> {
    id: Int,
    user: Card<'a>,
    status: &'a str,
    requested_at: Option<Moment>,
    connected_at: Option<Moment>,
    source: Option<&'a str>,
    met_at_event: Option<Met<'a>>,
}

pub fn connections(rows: &[Row], keys: &Keys) -> Option<Vec<u8>> {
    list(rows, keys, "-connected_at", 1, 8, |row| Connection {
        id: row.get(1),
        user: card(row, 2),
        status: row.get(6),
        requested_at: row.get(7),
        connected_at: row.get(8),
        source: row.get(9),
        met_at_event: row.get::<_, Option<Int>>(10).map(|id| Met { id, title: row.get(11) }),
    })
}

#[derive(Serialize)]
struct Progress {
    current: Int,
    target: Int,
    percentage: f64,
}

#[derive(Serialize)]
struct Achievement<'a> {
    id: Int,
    key: Option<&'a str>,
    name: &'a str,
    description: Option<&'a str>,
    icon_url: Option<&'a str>,
    category: &'a str,
    rarity: &'static str,
    rarity_percentage: f64,
    points: Int,
    is_hidden: bool,
    earned: bool,
    earned_at: Moment,
    progress: Option<Progress>,
    is_pinned: bool,
    pin_position: Option<usize>,
}

pub fn achievements(rows: &[Row], keys: &Keys) -> Option<Vec<u8>> {
    list(rows, keys, "-earned_at", 2, 13, |row| {
        let (Int(earners), Int(active)) = (row.get(11), row.get(15));
        let pins: Vec<Int> = row.get(1);
        let pin: Option<Int> = row.get(14);
        let target: Option<Int> = row.get(10);
        Achievement {
            id: row.get(2),
            key: row.get(3),
            name: row.get(4),
            description: row.get(5),
            icon_url: row.get(6),
            category: row.get(7),
            rarity: rarity_of(earners, active).name,
            rarity_percentage: percentage(earners, active),
            points: row.get(8),
            is_hidden: row.get(9),
            earned: true,
            earned_at: row.get(13),
            progress: target.map(|target| {
                let current: Int = row.get(12);
                Progress { current, target, percentage: percentage(current.0.min(target.0), target.0) }
            }),
            is_pinned: pin.is_some(),
            pin_position: pin.map(|pin| pins.iter().filter(|other| other.0 <= pin.0).count()),
        }
    })
}

#[derive(Default, Serialize)]
struct Count {
    total: i64,
    earned: i64,
    completion_percentage: f64,
}

impl Count {
    fn add(&mut self, earned: bool) {
        self.total += 1;
        self.earned += i64::from(earned);
    }
    fn complete(&mut self) {
        self.completion_percentage = percentage(self.earned, self.total);
    }
}

#[derive(Serialize)]
struct CategoryCount<'a> {
    category: &'a str,
    #[serde(flatten)]
    count: Count,
}

#[derive(Serialize)]
struct TierCount {
    rarity: &'static str,
    min_percentage: Option<i64>,
    max_percentage: Option<i64>,
    #[serde(flatten)]
    count: Count,
}

#[derive(Serialize)]
struct Rarest<'a> {
    id: Int,
    name: &'a str,
    rarity: &'static str,
    rarity_percentage: f64,
}

#[derive(Serialize)]
struct Statistics<'a> {
    #[serde(flatten)]
    count: Count,
    points_earned: i64,
    points_total: i64,
    last_earned_at: Option<Moment>,
    by_category: Vec<CategoryCount<'a>>,
    by_rarity: Vec<TierCount>,
    rarest_earned: Option<Rarest<'a>>,
    rarity_computed_at: Moment,
}

pub fn statistics(rows: &[Row], _: &Keys) -> Option<Vec<u8>> {
    let first = rows.first()?;
    let found = if first.get::<_, Option<Int>>(0).is_none() { &[] } else { rows };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
    let tier = |&Tier { name, percentages }: &Tier| TierCount {
        rarity: name,
        min_percentage: percentages.map(|(from, _)| from),
        max_percentage: percentages.map(|(_, to)| to),
        count: Count::default(),
    };
    let mut answer = Statistics {
        count: Count::default(),
        points_earned: 0,
        points_total: 0,
        last_earned_at: None,
        by_category: Vec::new(),
        by_rarity: TIERS.iter().map(tier).collect(),
        rarest_earned: None,
        rarity_computed_at: Moment(OffsetDateTime::from_unix_timestamp(now - now % 30).expect("a time of today")),
    };
    for row in found {
        let (name, category): (&str, &str) = (row.get(1), row.get(2));
        let (Int(points), Int(active), Int(earners)) = (row.get(3), row.get(5), row.get(6));
        let earned_at: Option<Moment> = row.get(4);
        let (rarity, share) = (rarity_of(earners, active).name, percentage(earners, active));
        let at = answer.by_category.iter().position(|group| group.category == category).unwrap_or_else(|| {
            answer.by_category.push(CategoryCount { category, count: Count::default() });
            answer.by_category.len() - 1
        });
        answer.by_category[at].count.add(earned_at.is_some());
        answer
            .by_rarity
            .iter_mut()
            .filter(|one| one.rarity == rarity)
            .for_each(|one| one.count.add(earned_at.is_some()));
        answer.count.add(earned_at.is_some());
        answer.points_total += points;
        if earned_at.is_none() {
            continue;
        }
        answer.points_earned += points;
        if answer.last_earned_at < earned_at {
            answer.last_earned_at = earned_at;
        }
        if answer.rarest_earned.as_ref().is_none_or(|other| share < other.rarity_percentage) {
            answer.rarest_earned = Some(Rarest { id: row.get(0), name, rarity, rarity_percentage: share });
        }
    }
    answer.by_category.sort_by_key(|group| group.category);
    answer.count.complete();
    answer.by_category.iter_mut().for_each(|group| group.count.complete());
    answer.by_rarity.iter_mut().for_each(|tier| tier.count.complete());
    json(&answer)
}

struct Tier {
    name: &'static str,
    /// From, to; `None` if there are too few active members.
    percentages: Option<(i64, i64)>,
}

static UNRATED: Tier = Tier { name: "unrated", percentages: None };
static TIERS: [Tier; 6] = [
    Tier { name: "common", percentages: Some((50, 100)) },
    Tier { name: "uncommon", percentages: Some((20, 50)) },
    Tier { name: "rare", percentages: Some((5, 20)) },
    Tier { name: "epic", percentages: Some((1, 5)) },
    Tier { name: "legendary", percentages: Some((0, 1)) },
    Tier { name: "unrated", percentages: None },
];

fn rarity_of(earners: i64, active: i64) -> &'static Tier {
    let is_reached = |tier: &&Tier| tier.percentages.is_some_and(|(from, _)| 100 * earners >= from * active);
    TIERS.iter().find(|tier| active >= 10 && is_reached(tier)).unwrap_or(&UNRATED)
}

/// Two decimals, half up.
fn percentage(part: i64, whole: i64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    ((20_000 * part + whole) / (2 * whole)) as f64 / 100.0
}
